//! A C file with hundreds of functions of all kinds that matter to stubs, and `traced_all`, which prints what they return.

use std::fmt::Write;
use testkit::Random;

const HEAD: &str = r#"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#define N __attribute__((noinline))
typedef unsigned long u;
typedef struct { long a, b; } pair;
typedef struct { double a, b; } reals;
typedef struct { long a; double b; } mixed;
typedef struct { long a[9]; } big;
typedef float quad __attribute__((vector_size(16)));
volatile long counter;
long table[64];
static jmp_buf back;
static int depth;
N long traced_fib(long n) { return n < 2 ? n : traced_fib(n - 1) + traced_fib(n - 2); }
N static long t_even(long n);
N static long t_odd(long n) { return n ? t_even(n - 1) : 0; }
N static long t_even(long n) { return n ? t_odd(n - 1) : 1; }
N static double t_half(double x, long n) { return n ? x / 2 : x; }
N static pair t_pair(long n) { pair p = {n, n * 7}; return p; }
N static void t_nothing(void) {}
N long traced_small(long n) { return t_odd(n) + (long)t_half(n, 1) + t_pair(n).b; }
"#;

/// The file.
pub fn source(functions: usize) -> String {
    let mut random = Random::new(7);
    let mut out = String::from(HEAD);
    for i in 0..functions {
        let callee = |random: &mut Random| match i {
            0 => "traced_small".to_string(),
            _ => format!("t_{}", random.below(i as u64 / 2 + 1).min(i as u64 - 1)),
        };
        let [f, g] = [callee(&mut random), callee(&mut random)];
        let [x, y, z] = [(); 3].map(|()| random.below(100) + 1);
        let one = format!("{}((long)((u)a % 97))", f);
        let two = format!("{}((long)((u)a % 89 + {y}))", g);
        let _ = match random.below(24) {
            0 => writeln!(out, "N long t_{i}(long a) {{ return {one} + (u){two} * {x}; }}"),
            1 => writeln!(out, "N long t_{i}(long a) {{ if (a == {z}) return {x}; return {one} ^ {y}; }}"),
            2 => writeln!(
                out,
                "N double r_{i}(double x, float y) {{ return x * {x} + y + (double)(t_half(x, 1) > 3); }}\nN long t_{i}(long a) {{ return (long)r_{i}(a, {y}) + {one}; }}"
            ),
            3 => writeln!(
                out,
                "N pair p_{i}(long a) {{ pair p = {{a + {x}, {one}}}; return p; }}\nN long t_{i}(long a) {{ pair p = p_{i}(a); return p.a ^ (u)p.b * 3; }}"
            ),
            4 => writeln!(
                out,
                "N reals p_{i}(long a) {{ reals p = {{a + {x}.5, a * {y}.25}}; return p; }}\nN long t_{i}(long a) {{ reals p = p_{i}(a); return (long)(p.a + p.b) + {one}; }}"
            ),
            5 => writeln!(
                out,
                "N mixed p_{i}(long a) {{ mixed p = {{{one}, a * {y}.25}}; return p; }}\nN long t_{i}(long a) {{ mixed p = p_{i}(a); return (long)p.b + (u)p.a; }}"
            ),
            6 => writeln!(
                out,
                "N double v_{i}(int n, ...) {{ va_list l; double s = 0; va_start(l, n); while (n--) s += va_arg(l, double) + va_arg(l, long); va_end(l); return s; }}\nN long t_{i}(long a) {{ return (long)v_{i}(3, {x}.5, a, 2.25, {y}L, (double)a, {z}L); }}"
            ),
            7 => writeln!(out, "N long t_{i}(long a) {{ return {f}((long)((u)a % 91)); }}"),
            8 => writeln!(out, "N long t_{i}(long a) {{ return a < 3 ? {one} : t_{i}(a / 3) + {x}; }}"),
            9 => writeln!(
                out,
                "N big b_{i}(long a) {{ big b; for (int i = 0; i < 9; i++) b.a[i] = a + i * {x}; return b; }}\nN long t_{i}(long a) {{ big b = b_{i}(a); return b.a[{}] + (u){one}; }}",
                x % 9
            ),
            10 => writeln!(
                out,
                "N __int128 w_{i}(__int128 a, long b) {{ return a * b + {x}; }}\nN long t_{i}(long a) {{ __int128 w = w_{i}((__int128)a << 70, {y}); return (long)(w >> 64) ^ (long)w; }}"
            ),
            11 => writeln!(
                out,
                "N long double l_{i}(long double a) {{ return a * {x}.5L + 1; }}\nN long t_{i}(long a) {{ return (long)l_{i}(a) + {one}; }}"
            ),
            12 => writeln!(
                out,
                "N long t_{i}(long a) {{ switch ((u)a % 7) {{ case 0: return {x}; case 1: return {one}; case 2: t_nothing(); return 5; case 3: return a * 3; case 4: return -a; case 5: return {two}; default: return {z}; }} }}"
            ),
            13 => writeln!(out, "N long t_{i}(long a) {{ counter += a; return counter % 1000003; }}"),
            14 => writeln!(out, "N long t_{i}(long a) {{ if (!counter) return {x}; t_nothing(); return a; }}"),
            15 => writeln!(
                out,
                "N long t_{i}(long a) {{ N long t_inner_{i}(long b) {{ return (u)a * b + {x}; }} return t_inner_{i}({y}) + {one}; }}"
            ),
            16 => writeln!(
                out,
                "N static void j_{i}(long a) {{ if (a > 0) j_{i}(a - 1); else longjmp(back, {x}); }}\nN long t_{i}(long a) {{ if (depth) return a; depth++; int r = setjmp(back); if (!r) j_{i}((u)a % 5); depth--; return r + a; }}"
            ),
            17 => writeln!(out, "N long t_{i}(long a) {{ return a; }}"),
            18 => writeln!(out, "N void e_{i}(void) {{}}\nN long t_{i}(long a) {{ e_{i}(); return a + {x}; }}"),
            19 => writeln!(
                out,
                "long (*volatile q_{i})(long) = {f};\nN long t_{i}(long a) {{ return q_{i}((long)((u)a % 93)); }}\nN long u_{i}(long a) {{ return q_{i}(a % 5) + 1; }}"
            ),
            20 => writeln!(
                out,
                "N long m_{i}(long a, long b, long c, long d, long e, long f, long g, long h, double x, long i) {{ return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + (long)x + i; }}\nN long t_{i}(long a) {{ return m_{i}(a, 1, 2, 3, {x}, 5, a, 7, 8.5, {y}); }}"
            ),
            21 => writeln!(
                out,
                "N quad s_{i}(quad a, quad b) {{ return a * b + {x}; }}\nN long t_{i}(long a) {{ quad q = {{a, 1, 2, 3}}; q = s_{i}(q, q); return (long)(q[0] + q[3]) + {one}; }}"
            ),
            22 => writeln!(out, "N long t_{i}(long a) {{ return t_even((u)a % 50) + table[(u)a % 64]; }}"),
            _ => writeln!(
                out,
                "N long t_{i}(long a) {{ long s = 0; for (long k = 0; k < (long)((u)a % 4); k++) s += (u){f}(k + {x}) * k; return s; }}"
            ),
        };
    }
    out.push_str("void traced_all(void) {\n");
    for i in 0..functions {
        let _ = writeln!(out, "printf(\"{i} %ld %ld %ld\\n\", t_{i}({i}), t_{i}(-5), t_{i}(1000));");
    }
    out + "}\n"
}
