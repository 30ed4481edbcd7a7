// A compiler that knows kernels' names and how many parameters they have, and
// finds errors only in lines with #error.
#include "fake.h"

#include <stdarg.h>

typedef struct program {
	object o;
	char *src, *name, log[1024], cubin[4096];
	size_t size;
} program;

nvrtcResult nvrtcVersion(int *major, int *minor)
{
	*major = 12;
	*minor = 9;
	return 0;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
	*n = 2;
	return 0;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
	archs[0] = 80;
	archs[1] = 90;
	return 0;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *src, const char *name, int n, const char *const *headers,
			       const char *const *names)
{
	ENTER_ANY("%s %d %d", name, n, headers || names);
	program *p = fake_new(PROGRAM, sizeof *p);
	p->src = strdup(src);
	p->name = strdup(name);
	*out = (nvrtcProgram)p;
	LEAVE(0);
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *h)
{
	ENTER_ANY("%s", "");
	fake_end(*h);
	*h = NULL;
	LEAVE(0);
}

// kernels writes a line for each kernel of a source.
static void kernels(program *p)
{
	static const char mark[] = "__global__ void ";
	char *text = p->cubin + p->size;
	for (const char *at = p->src; (at = strstr(at, mark));) {
		char name[64];
		at += sizeof mark - 1;
		if (sscanf(at, " %63[A-Za-z0-9_]", name) != 1)
			continue;
		at = strchr(at, '(');
		int params = at && at[1] != ')';
		for (; at && *at && *at != ')'; at++)
			params += *at == ',';
		text += sprintf(text, "kernel %s %d\n", name, params);
		if (!at)
			break;
	}
	p->size = text - p->cubin;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram h, int n, const char *const *options)
{
	program *p = (program *)h;
	ENTER_ANY("%s %s%s", p->name, n > 0 ? options[0] : "", n > 1 ? " …" : "");
	int arch = 0;
	for (int i = 0; i < n; i++) {
		sscanf(options[i], "--gpu-architecture=sm_%d", &arch);
		if (!strcmp(options[i], "--wrong")) {
			snprintf(p->log, sizeof p->log, "nvrtc: error: invalid value for option %s\n", options[i]);
			LEAVE(LORI_NVRTC_INVALID_OPTION);
		}
	}
	const char *error = strstr(p->src, "#error ");
	if (error) {
		int line = 1;
		for (const char *c = p->src; c < error; c++)
			line += *c == '\n';
		snprintf(p->log, sizeof p->log, "%s(%d): error: #error directive: %.*s\n\n1 error detected.\n", p->name,
			 line, (int)strcspn(error + 7, "\n"), error + 7);
		LEAVE(LORI_NVRTC_COMPILATION);
	}
	if (strstr(p->src, "warn"))
		snprintf(p->log, sizeof p->log, "%s(1): warning: take care\n", p->name);
	if (arch) { // compute_… is no machine code
		memcpy(p->cubin, "\177ELF\2\1", 6);
		p->size = 64 + sprintf(p->cubin + 64, "FAKE %d\n", arch);
		kernels(p);
		p->size++; // the zero at the end
	}
	LEAVE(0);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram h, size_t *n)
{
	*n = strlen(((program *)h)->log) + 1;
	return 0;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram h, char *log)
{
	strcpy(log, ((program *)h)->log);
	return 0;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram h, size_t *n)
{
	*n = ((program *)h)->size;
	return 0;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram h, char *cubin)
{
	program *p = (program *)h;
	memcpy(cubin, p->cubin, p->size);
	return 0;
}
