"""Makes descriptors in all ways, renames some, and uses them: what each of them is called is seen with -y."""
import fcntl
import os
import select
import socket

os.chdir("/tmp")
for turn in range(4):
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    copies = [os.dup(null), fcntl.fcntl(null, fcntl.F_DUPFD, 50), os.dup2(null, 60)]
    for copy in copies:
        fcntl.fcntl(copy, fcntl.F_GETFL)
        os.write(copy, b"x")
    reader, writer = os.pipe()
    os.write(writer, b"y")
    os.read(reader, 1)

    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    client.send(b"there")
    accepted.recv(9)
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [null])
    _, passed, _, _ = socket.recv_fds(other, 10, 4)
    os.write(passed[0], b"passed")
    # Credentials in front of them, and more than there is room for.
    other.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    socket.send_fds(one, [b"y"], [reader, writer, null])
    _, control, _, _ = other.recvmsg(10, 256)
    more = memoryview(b"".join(data for _, kind, data in control if kind == socket.SCM_RIGHTS)).cast("i").tolist()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    socket.send_fds(one, [b"z"], [null] * 8)
    _, cut, _, _ = socket.recv_fds(other, 10, 2)
    other.recvmsg(10, 0, socket.MSG_DONTWAIT) if one.send(b"plain") else None
    passed += more + cut
    for fd in passed:
        fcntl.fcntl(fd, fcntl.F_GETFL)
    local = socket.socket(socket.AF_UNIX)
    local.bind(b"\0trapline %07d" % os.getpid())
    local.listen()
    near = socket.socket(socket.AF_UNIX)
    near.connect(local.getsockname())
    far, _ = local.accept()
    far.send(b"z")
    near.recv(3)

    events = select.epoll()
    events.register(accepted, 1)
    events.poll(0)
    memory = os.memfd_create("memory")
    os.write(memory, b"abc")
    nameless = os.open(".", os.O_TMPFILE | os.O_RDWR)
    os.write(nameless, b"abc")
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    above = os.open("..", os.O_RDONLY, dir_fd=here)
    os.chdir("/usr")
    relative = os.open("bin", os.O_RDONLY)
    os.fchdir(here)
    try:
        os.open("/nonexistent", 0)
    except OSError:
        pass
    for fd in [null, *copies, reader, writer, *passed, memory, nameless, here, above, relative]:
        os.close(fd)
    for end in [server, client, accepted, one, other, local, near, far, events]:
        end.close()

# Names are those of the tracer's root directory.
if os.geteuid() == 0:
    os.chroot("/etc")
    for turn in range(4):
        fd = os.open("/passwd", 0)
        os.read(fd, 1)
        os.close(fd)
