//! docs/SCRIPTS.md: its reference is the checker's table.

#[test]
fn the_page_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SCRIPTS.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (before, _) = page.split_once("<!-- reference -->\n").expect("its place");
    let whole = format!("{before}<!-- reference -->\n\n{}", lang::script::table::reference().trim_end()) + "\n";
    expect_test::expect_file![path].assert_eq(&whole);
}
