//! Memory that a script reads: names of headers and of the kernel, and what is moved into leaves.

use super::*;

#[test]
fn constants_of_headers() {
    check(
        "#include <net/tcp_states.h>\nbegin { $a = TCP_CLOSE; $b = AF_INET6 == 10; $c = IPPROTO_TCP; $d = S_IFREG; $e = ENOENT; $f = SIGKILL; }",
        expect![[r#"
            begin int8 bool int8 int32 int8 int8
        "#]],
    );
}

#[test]
fn names_that_the_kernel_has() {
    check_all(
        &[
            "begin { @a = REASON_NONE; @b = REASON_LESS; } end { $q = (struct cfs_rq *)@a; @c = $q->nr_queued; }",
            "begin { @ = REASON_TWICE; }",
            "begin { @ = ((struct cfs_rq *)5)->nr_running; }",
            "struct cfs_rq { int nr_queued; } begin { @ = ((struct cfs_rq *)5)->nr_running; }",
        ],
        expect![[r#"
            begin
            end struct cfs_rq *
            @a[]: int8
            @b[]: int64
            @c[]: uint32

            stdin:1:13-25: ERROR: 'REASON_TWICE' has several values [S0005]
            begin { @ = REASON_TWICE; }
                        ~~~~~~~~~~~~
            HINT: write the number: 1 (reason), 3 (an enumeration without a name)

            begin
            @[]: uint32
            stdin:1:13-45: WARNING: the running kernel's 'struct cfs_rq' has 'nr_queued' in the place of 'nr_running' [S0010]
            begin { @ = ((struct cfs_rq *)5)->nr_running; }
                        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
            HINT: the name has changed with Linux 6.14

            stdin:1:46-78: ERROR: 'struct cfs_rq' has no member 'nr_running' [S0010]
            struct cfs_rq { int nr_queued; } begin { @ = ((struct cfs_rq *)5)->nr_running; }
                                                         ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        "#]],
    );
}

#[test]
fn arrays_of_strings_are_joined() {
    check_all(
        &[
            "tracepoint:syscalls:sys_enter_execve { join(args.argv); join(args.argv, \",\"); join((char **)5); }",
            "tracepoint:syscalls:sys_enter_execve { join((char *)args.argv); }",
        ],
        expect![[r#"
            tracepoint:syscalls:sys_enter_execve <Arg("argv"): void *>

            stdin:1:45-62: ERROR: 'join' prints strings, not values of type int8 * [S0007]
            tracepoint:syscalls:sys_enter_execve { join((char *)args.argv); }
                                                        ~~~~~~~~~~~~~~~~~
            HINT: cast it: (char **)…
        "#]],
    );
    let p = compile("tracepoint:syscalls:sys_enter_execve { join(args.argv); }", &params(), &world());
    let mut p = p.expect("a script");
    hoist::hoist(&mut p);
    let leaves: Vec<_> = p.clauses[0].leaves.iter().map(|l| format!("{:?}", l.what)).collect();
    assert_eq!(leaves, ["Arg(\"argv\")", "Memory(0)"]);
}

/// What is moved out of a script: of each memory its address, in numbers of leaves.
fn moved(text: &str) -> Vec<String> {
    let mut p = compile(text, &params(), &world()).unwrap_or_else(|e| panic!("{}", e[0].show("stdin", text)));
    hoist::hoist(&mut p);
    p.hoisted.iter().map(|h| address(&hoist::Read::of(&h.expr).expect("memory").address)).collect()
}

fn address(i: &ir::Int) -> String {
    match i {
        ir::Int::Const(v) => v.to_string(),
        ir::Int::Value(e) => match &e.kind {
            ir::Kind::Leaf(n) => format!("leaf{n}"),
            ir::Kind::Load(of, _) => format!("*({})", address(of)),
            other => format!("{other:?}"),
        },
        ir::Int::Binary(op, a, b) => format!("{} {op:?} {}", address(a), address(b)),
        other => format!("{other:?}"),
    }
}

#[test]
fn memory_behind_variables_that_change_is_known() {
    let node = "struct node { struct node *next; int n; } uprobe:/bin/x:f";
    let of = |body: &str| moved(&format!("{node} {{ $p = (struct node *)arg0; {body} }}"));
    // A list, by any loop whose rounds are known.
    let list = ["leaf0 Add 8", "leaf0", "*(leaf0) Add 8", "*(leaf0)"];
    assert_eq!(of("unroll(2) { @ = sum($p->n); $p = $p->next; }"), list);
    assert_eq!(of("for ($i : 0..2) { @ = sum($p->n); $p = $p->next; }"), list);
    assert_eq!(of("$i = 2; while ($i-- > 0) { @ = sum($p->n); $p = $p->next; }"), list);
    assert_eq!(of("$i = 0; while ($i < 2) { if ($p == 0) { break; } @ = sum($p->n); $p = $p->next; $i++; }"), list);
    // An array.
    assert_eq!(of("unroll(3) { @ = sum(($p++)->n); }"), ["leaf0 Add 8", "leaf0 Add 24", "leaf0 Add 40"]);
    // What a map holds, until it is changed.
    assert_eq!(of("@p[1] = $p; print(@p[1]->n);"), ["leaf0 Add 8"]);
    assert_eq!(of("@p[1] = $p; clear(@p); print(@p[1]->n);"), [""; 0]);
    assert_eq!(of("@p[1] = $p; @p[arg1] = $p; print(@p[1]->n);"), [""; 0]);
    // Nobody knows which one it is.
    assert_eq!(of("if (arg1) { $p = (struct node *)arg2; } print($p->n);"), [""; 0]);
    assert_eq!(of("$i = arg1; while ($i-- > 0) { print($p->n); $p++; }"), [""; 0]);
    assert_eq!(of("unroll(2) { if (arg1) { continue; } $p++; print($p->n); }"), [""; 0]);
}

/// Of events whose memory has at each address its lowest byte: the numbers that are printed.
struct Numbers(Vec<i64>);

impl run::Event for Numbers {
    fn leaf(&self, _: usize, leaf: &ir::Leaf) -> Option<run::Datum<'_>> {
        (!matches!(leaf.what, ir::What::Memory(_))).then_some(run::Datum::Int(1 << 16))
    }

    fn memory(&self, _: types::Space, address: u64, length: usize) -> run::Memory {
        let mut bytes = vec![0; length];
        bytes[0] = address as u8;
        run::Memory::Bytes(bytes)
    }
}

impl run::Host for Numbers {
    fn output(&mut self, output: run::Output<'_>) {
        match output {
            run::Output::Value { value, .. } => self.0.push(value.int()),
            run::Output::Map { rows, .. } => self.0.extend(rows.iter().map(|r| r.held.read(&Type::INT).int())),
            _ => {}
        }
    }

    fn wall(&mut self, _: Option<u64>) -> time::Wall {
        time::Wall::default()
    }
}

#[test]
fn loops_that_are_written_out_do_what_they_did() {
    let text = "struct node { struct node *next; uint64 n; } uprobe:/bin/x:f { $p = (struct node *)arg0; $i = 5;
        while ($i-- > 0) { if ($i == 1) { break; } @n += $p->n; $p++; } print(@n); print($i); }";
    let run = |moves: bool| {
        let mut p = compile(text, &params(), &world()).expect("a script");
        if moves {
            hoist::hoist(&mut p);
            assert_eq!(p.hoisted.len(), 5);
        }
        let mut numbers = Numbers(Vec::new());
        run::Machine::new(p, 1).run(0, &Numbers(Vec::new()), &mut numbers);
        numbers.0
    };
    // Each reads the lowest byte of its address: 8, 24, and 40.
    assert_eq!((run(true), run(false)), (vec![72, 1], vec![72, 1]));
}
