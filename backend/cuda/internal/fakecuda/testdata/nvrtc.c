// A compiler: sources are C++ to g++ (see device.h), and the machine code is a
// library for the host. What was compiled once is kept in a folder, by the hash
// of all that matters.
#include "fake.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct program {
	object o;
	char *src, *name, *cubin;
	char log[4096], ptx[5200];
	size_t size;
} program;

char fake_cache[4096];
static char headers[4096];

// fake_paths says where device.h is, and the folder of what was compiled.
void fake_paths(const char *of_headers, const char *of_cache)
{
	snprintf(headers, sizeof headers, "%s", of_headers);
	snprintf(fake_cache, sizeof fake_cache, "%s", of_cache);
}

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

// add_entries writes the table of the kernels of a source.
static void add_entries(FILE *f, const char *src)
{
	static const char mark[] = "__global__ void ";
	fprintf(f, "\nstatic const Kernel fake_kernels[] = {\n");
	for (const char *at = src; (at = strstr(at, mark));) {
		char name[256];
		at += sizeof mark - 1;
		if (!strncmp(at, "__launch_bounds__(", 18))
			at += strcspn(at, ")") + 1;
		if (sscanf(at, " %255[A-Za-z0-9_]", name) == 1)
			fprintf(f, "{\"%s\", Entry<%s>::run, Entry<%s>::sizes},\n", name, name, name);
	}
	fprintf(f, "{}};\n");
}

// write_source writes what g++ compiles.
static bool write_source(const char *path, const program *p, int arch)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	fprintf(f, "#include \"%s/device.h\"\n#line 1 \"%s\"\n%s\n", headers, p->name, p->src);
	add_entries(f, p->src);
	fprintf(f, "extern \"C\" const struct { int arch; const Kernel* kernels; gpu** here; } fake_image = {%d, fake_kernels, &here};\n",
		arch);
	return !fclose(f);
}

// run_compiler returns whether g++ succeeds; what it says goes to a file.
static bool run_compiler(const char *source, const char *to, const char *log)
{
	char *const args[] = {"g++", "-std=c++17", "-O0", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-fPIC", "-shared",
			      "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-fmax-errors=5", "-o", (char *)to,
			      (char *)source, NULL};
	extern char **environ;
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status = -1;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (!posix_spawnp(&pid, "g++", &files, NULL, args, environ))
		while (waitpid(pid, &status, 0) < 0)
			;
	posix_spawn_file_actions_destroy(&files);
	return status == 0;
}

// tell writes errors of g++ as NVRTC does.
static void tell(program *p, const char *log)
{
	FILE *f = fopen(log, "r");
	char text[1024], file[512], what[512];
	int line, column, errors = 0;
	size_t at = 0;
	while (f && fgets(text, sizeof text, f)) {
		bool place = sscanf(text, "%511[^:]:%d:%d: error: %511[^\n]", file, &line, &column, what) == 4 ||
			     sscanf(text, "%511[^:]:%d:%d: fatal error: %511[^\n]", file, &line, &column, what) == 4;
		if (!place || at > sizeof p->log - 1200)
			continue;
		bool directive = !strncmp(what, "#error ", 7);
		at += sprintf(p->log + at, "%s(%d): error: %s%s\n", file, line, directive ? "#error directive: " : "",
			      what + 7 * directive);
		errors++;
	}
	if (f)
		fclose(f);
	sprintf(p->log + at, errors ? "\n%d error detected.\n" : "g++ failed\n", errors);
}

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h ^ h >> 32;
}

static bool read_library(program *p, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	bool ok = !fstat(fd, &st) && (p->cubin = malloc(st.st_size)) && read(fd, p->cubin, st.st_size) == st.st_size;
	p->size = ok ? st.st_size : 0;
	close(fd);
	return ok;
}

// tell_ptx writes PTX, which has no more than the place of what was compiled.
static bool tell_ptx(program *p, const char *path)
{
	snprintf(p->ptx, sizeof p->ptx, ".version 8.8\n.target sm_80\n" FAKE_PTX "%s\n", path);
	return true;
}

// build compiles a program, or finds it compiled.
static bool build(program *p, int arch)
{
	static _Atomic int count;
	char stem[5000], path[5100], temporary[5100], source[5100], log[5100];
	char number[16];
	sprintf(number, "sm_%d", arch);
	uint64_t a = hash(hash(hash(0xcbf29ce484222325, number), p->name), p->src);
	uint64_t b = hash(hash(hash(0x9e3779b97f4a7c15, p->src), p->name), number);
	snprintf(path, sizeof path, "%s/%016llx%016llx.so", fake_cache, (unsigned long long)a, (unsigned long long)b);
	if (read_library(p, path))
		return tell_ptx(p, path);
	snprintf(stem, sizeof stem, "%s/tmp-%d-%p-%d", fake_cache, (int)getpid(), (void *)p, count++);
	snprintf(source, sizeof source, "%s.cc", stem);
	snprintf(temporary, sizeof temporary, "%s.so", stem);
	snprintf(log, sizeof log, "%s.log", stem);
	bool ok = write_source(source, p, arch) && run_compiler(source, temporary, log);
	if (!ok)
		tell(p, log);
	ok = ok && read_library(p, temporary);
	if (!ok || rename(temporary, path))
		unlink(temporary);
	unlink(source);
	unlink(log);
	return ok && tell_ptx(p, path);
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram h, int n, const char *const *options)
{
	program *p = (program *)h;
	ENTER_ANY("%s %s%s", p->name, n > 0 ? options[0] : "", n > 1 ? " …" : "");
	int arch = 0, virtual = 0;
	for (int i = 0; i < n; i++) {
		sscanf(options[i], "--gpu-architecture=sm_%d", &arch);
		sscanf(options[i], "--gpu-architecture=compute_%d", &virtual);
		if (!strcmp(options[i], "--wrong")) {
			snprintf(p->log, sizeof p->log, "nvrtc: error: invalid value for option %s\n", options[i]);
			LEAVE(LORI_NVRTC_INVALID_OPTION);
		}
	}
	if (strstr(p->src, "// warn"))
		snprintf(p->log, sizeof p->log, "%s(1): warning: take care\n", p->name);
	pthread_mutex_unlock(&fake_lock);
	bool ok = build(p, arch ? arch : virtual);
	pthread_mutex_lock(&fake_lock);
	if (!arch) // compute_… is no machine code
		p->size = 0;
	LEAVE(ok ? 0 : LORI_NVRTC_COMPILATION);
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

nvrtcResult nvrtcGetPTXSize(nvrtcProgram h, size_t *n)
{
	*n = strlen(((program *)h)->ptx) + 1;
	return 0;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram h, char *ptx)
{
	strcpy(ptx, ((program *)h)->ptx);
	return 0;
}
