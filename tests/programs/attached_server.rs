//! A server with a thread for each connection, which answers each line with a number: that of the sum of its digits, by recursion. A line that
//! has no digit makes the answer panic; the panic is caught, and the answer is its message. Prints its port.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::panic;
use std::thread;

#[inline(never)]
fn digits(text: &[u8]) -> u64 {
    match text {
        [] => 0,
        [digit @ b'0'..=b'9', rest @ ..] => black_box(digits(rest)) + u64::from(digit - b'0'),
        [other, ..] => panic!("{other} is no digit"),
    }
}

#[inline(never)]
fn answer(line: &str) -> String {
    let sum = panic::catch_unwind(|| digits(line.trim().as_bytes()));
    sum.map_or_else(|e| e.downcast_ref::<String>().cloned().unwrap_or_default(), |sum| sum.to_string())
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        stream.write_all(format!("{}\n", answer(&line)).as_bytes())?;
        line.clear();
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    panic::set_hook(Box::new(|_| {}));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || serve(stream));
    }
    Ok(())
}
