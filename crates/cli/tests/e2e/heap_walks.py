# For gdb: runs a program, and prints for each of its first 200 calls of an allocator from main, or from a coroutine: `call FUNCTION SIZE`,
# then `frame FUNCTION` of each frame from the allocator's caller to that, inlined ones too.
import gdb

for setting in (
    "pagination off",
    "confirm off",
    "startup-with-shell off",
    "debuginfod enabled off",
    "backtrace limit unlimited",
):
    gdb.execute("set " + setting)
gdb.execute("handle all nostop noprint pass")
gdb.execute("break main")
gdb.execute("run")
gdb.execute("delete")
functions = ("malloc", "calloc")
for function in functions:
    gdb.execute("break *(char *)&'%s'" % function)
calls = 0
while calls < 200:
    try:
        gdb.execute("continue")
        frame = gdb.newest_frame()
    except gdb.error:
        break
    called = frame.name() or ""
    size = int(gdb.parse_and_eval("$rdi"))
    if "calloc" in called:
        size *= int(gdb.parse_and_eval("$rsi"))
    frame = frame.older()
    names = []
    while frame is not None:
        names.append(frame.name() or "?")
        frame = frame.older()
    ends = [n for n, name in enumerate(names) if name in ("main", "coroutine")]
    if ends:
        calls += 1
        print("call %s %d" % (called, size))
        for name in names[: ends[0] + 1]:
            print("frame " + name)
if gdb.selected_inferior().pid:
    gdb.execute("kill")
