# For gdb: runs a program, and prints how often each of some functions was called by which of them ("caller callee count"): the innermost
# of them on the stack is the caller, "-" where there is none. The names are in the environment's FUNCTIONS.
import collections
import os

import gdb

for setting in ("pagination off", "confirm off", "startup-with-shell off", "debuginfod enabled off"):
    gdb.execute("set " + setting)
gdb.execute("handle all nostop noprint pass")
names = os.environ["FUNCTIONS"].split()
calls = collections.Counter()


def function(frame):
    # What a compiler puts elsewhere is called NAME.cold.
    return (frame.name() or "").split(".")[0]


class Call(gdb.Breakpoint):
    def stop(self):
        frame = gdb.newest_frame()
        callee, frame = function(frame), frame.older()
        while frame is not None and (function(frame) not in names or frame.type() == gdb.TAILCALL_FRAME):
            frame = frame.older()
        calls[function(frame) if frame is not None else "-", callee] += 1
        return False


for name in names:
    Call("*" + name)
gdb.execute("run")
for (caller, callee), count in sorted(calls.items()):
    print("call %s %s %d" % (caller, callee, count))
