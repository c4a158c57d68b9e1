# For gdb: runs a program to its getppid(2), and prints module and offset in its file of each frame, innermost first. Frames that gdb makes
# up, of inlined and of tail calls, are left out.
import gdb

for setting in (
    "pagination off",
    "confirm off",
    "startup-with-shell off",
    "debuginfod enabled off",
    "backtrace past-main on",
    "backtrace past-entry on",
    "backtrace limit unlimited",
):
    gdb.execute("set " + setting)
gdb.execute("catch syscall 110")
gdb.execute("handle all nostop noprint pass")
gdb.execute("run")
maps = []
with open("/proc/%d/maps" % gdb.selected_inferior().pid) as lines:
    for line in lines:
        words = line.split(None, 5)
        if len(words) == 6:
            start, end = (int(w, 16) for w in words[0].split("-"))
            maps.append((start, end, int(words[2], 16), words[5].rstrip("\n")))
frame = gdb.newest_frame()
while frame is not None:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        pc = frame.pc()
        for start, end, offset, path in maps:
            if start <= pc < end:
                print("frame %s %#x" % (path, pc - start + offset))
    frame = frame.older()
gdb.execute("kill")
