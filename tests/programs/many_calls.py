"""Makes calls of which arguments decide what memory they have: arrays of buffers, messages, sets of descriptors, structures by command."""
import array, fcntl, os, select, socket, struct, termios, time


def fails(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        return
    raise SystemExit(f"{call} works")


reads, writes = os.pipe()
a, b = socket.socketpair()
datagrams, stream = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket()
file = os.open("/etc/passwd", 0)
polled = select.epoll()
polled.register(a, 1)
for i in range(6):
    os.writev(writes, [b"ab" * i, b"c" * 40, b""])
    os.readv(reads, [bytearray(3), bytearray(50)])
    os.preadv(file, [bytearray(4), bytearray(9)], i)
    fails(os.writev, file, [b"no"])
    fails(os.preadv, reads, [bytearray(4)], 0)
    a.sendmsg([b"head", b"body" * 20], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
    for passed in array.array("i", b.recvmsg(200, 64)[1][0][2]):
        os.close(passed)
    b.setblocking(False)
    a.sendmsg([])
    fails(b.recvmsg, 7)
    fails(datagrams.sendto, b"x", "/nowhere/at/all")
    fails(datagrams.sendmsg, [b"x"], [], 0, "\0abstract")
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 2))
    stream.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
    stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    fails(stream.setsockopt, socket.SOL_SOCKET, 9999, b"abcdefgh")
    fails(stream.getsockopt, 77, 1, 20)
    select.select([reads, a], [writes], [], 0)
    select.select([], [], [], 0.0)
    poll = select.poll()
    poll.register(reads, 1)
    poll.register(writes, 4)
    poll.poll(0)
    polled.modify(a, 1 | 4)
    polled.poll(0)
    fails(polled.unregister, reads)
    os.listdir("/etc/apt")
    os.listdir("/")
    fcntl.fcntl(file, fcntl.F_GETFL)
    fcntl.fcntl(file, fcntl.F_SETFD, 1)
    fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", 1, 0, 0, 0, 0))
    os.close(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 100))
    fcntl.ioctl(reads, termios.FIONREAD, b"\0" * 4)
    fails(fcntl.ioctl, reads, termios.TCGETS, b"\0" * 60)
    fails(fcntl.ioctl, reads, 0x1234567, b"q" * 100)
    fails(os.getxattr, "/etc", "user.none")
    fails(os.waitid, os.P_PID, 1, os.WEXITED | os.WNOHANG)
    os.sendfile(writes, file, 0, 10)
    os.read(reads, 10)
    time.sleep(0.0001)
