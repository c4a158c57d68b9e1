//! Calls of functions as JSON.

mod calls;

use calls::script;
use expect_test::expect;
use serde_json::Value;
use views::calls::Selection;
use views::calls::json::Json;

/// Two threads, a system call, records that are missing, calls that do not return, a name with characters of every kind.
const USUAL: &str = "
    7: 1000 +main 1100 +f\u{1b}\"<b>\\@/lib/libf.so 1250 >write(1,\"x\")=1 1300 -f\u{1b}\"<b>\\@/lib/libf.so 1400 +f\u{1b}\"<b>\\@/lib/libf.so 2000 -main 2100 -before
    8: 1150 +work 1200 ?42 1500 +exit 1600 !
";

#[test]
fn json_has_an_object_for_each_call() {
    let text = script(USUAL).shown(Json::new(Selection::default()));
    expect![[r#"
        {"v":1,"type":"gap","pid":4711,"tid":8,"tid_comm":"app","time_ns":1200,"dropped":42}
        {"v":1,"type":"call","pid":4711,"tid":7,"tid_comm":"app","function":"f\u001b\"<b>\\","module":"/lib/libf.so","start_ns":1100,"duration_ns":200,"self_ns":200,"depth":1}
        {"v":1,"type":"call","pid":4711,"tid":8,"tid_comm":"app","function":"exit","module":"/usr/bin/app","start_ns":1500,"duration_ns":100,"self_ns":100,"depth":1,"unfinished":true}
        {"v":1,"type":"call","pid":4711,"tid":8,"tid_comm":"app","function":"work","module":"/usr/bin/app","start_ns":1150,"duration_ns":450,"self_ns":350,"depth":0,"unfinished":true,"across_gap":true}
        {"v":1,"type":"call","pid":4711,"tid":7,"tid_comm":"app","function":"f\u001b\"<b>\\","module":"/lib/libf.so","start_ns":1400,"duration_ns":600,"self_ns":600,"depth":1,"left":true}
        {"v":1,"type":"call","pid":4711,"tid":7,"tid_comm":"app","function":"main","module":"/usr/bin/app","start_ns":1000,"duration_ns":1000,"self_ns":200,"depth":0}
        {"v":1,"type":"return","pid":4711,"tid":7,"tid_comm":"app","function":"before","module":"/usr/bin/app","time_ns":2100}
    "#]].assert_eq(&text);
    for line in text.lines() {
        let object: Value = serde_json::from_str(line).expect("JSON");
        assert!(object.is_object() && !line.chars().any(char::is_control), "{line}");
    }
    let long = script(USUAL).shown(Json::new(Selection { shortest: 1000, ..Selection::default() }));
    assert_eq!(long.matches("\"type\":\"call\"").count(), 1);
}
