/* Tracers of functions for trapline. docs/TRACERS.md says what they may do. */
#ifndef TRAPLINE_TRACER_H
#define TRAPLINE_TRACER_H

#ifdef __cplusplus
extern "C" {
#endif

/* A function that is traced. */
struct trapline_function {
	/* Where it begins. */
	const void *address;
	/* Its number: functions of a process are numbered from 1. */
	unsigned number;
	unsigned reserved;
};

/* A tracer's flag: its callbacks may use any vector registers, or call functions that do, such as memcpy and strlen. Without it they use none
   but those of SSE and AVX, and a call is half a microsecond cheaper. */
#define TRAPLINE_ALL_REGISTERS 1u
#ifdef __AVX512F__
#define TRAPLINE_FLAGS TRAPLINE_ALL_REGISTERS
#else
#define TRAPLINE_FLAGS 0u
#endif

/* A tracer. It must stay where it is as long as the process runs: trapline_register keeps the library loaded that it is in. */
struct trapline_tracer {
	/* 1. */
	unsigned version;
	/* TRAPLINE_FLAGS, or TRAPLINE_ALL_REGISTERS. */
	unsigned flags;
	/* At most 31 printable characters, without spaces. */
	const char *name;
	/* A function begins, called from `caller`; `depth` calls are open on this thread. Or 0. */
	void (*enter)(const struct trapline_function *function, const void *caller, unsigned depth);
	/* A function returns. Or 0. */
	void (*exit)(const struct trapline_function *function, unsigned depth);
};

/* The agent, where there is one. */
typedef long (*trapline_agent_function)(unsigned operation, const void *argument, unsigned long size);
void *dlsym(void *handle, const char *name);

static inline long trapline_ask(unsigned operation, const void *argument, unsigned long size)
{
	trapline_agent_function agent = (trapline_agent_function)dlsym((void *)0, "trapline_agent");
	return agent ? agent(operation, argument, size) : -1;
}

/* Keeps the library loaded that an address is in: RTLD_LAZY, RTLD_NOLOAD and RTLD_NODELETE of dlopen(3). */
static inline void trapline_stay(const void *address)
{
	struct {
		const char *path;
		const void *rest[3];
	} object = {0, {0, 0, 0}};
	int (*find)(const void *, void *) = (int (*)(const void *, void *))dlsym((void *)0, "dladdr");
	void *(*open)(const char *, int) = (void *(*)(const char *, int))dlsym((void *)0, "dlopen");
	if (find && open && find(address, &object) && object.path)
		open(object.path, 0x1 | 0x4 | 0x1000);
}

/* Tells the agent of a tracer. Returns 0, or -1 where there is no agent, or where another tracer has the name. */
static inline int trapline_register(const struct trapline_tracer *tracer)
{
	if (dlsym((void *)0, "trapline_agent"))
		trapline_stay(tracer);
	return (int)trapline_ask(1, tracer, 0);
}

/* Tells trapline's user that a tracer has failed. May be called by a callback. */
static inline void trapline_report(const struct trapline_tracer *tracer)
{
	trapline_ask(3, tracer, 0);
}

#ifdef __cplusplus
}
#endif
#endif
