// Opens a library of a package and makes a container of it for each device; prints what comes of it.
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		printf("%s\n", argc > 1 ? dlerror() : "no library is named");
		return 1;
	}
	int (*create)(void **, size_t, bool, const char *) = dlsym(library, "AOTInductorModelContainerCreate");
	int (*why)(const char **) = dlsym(library, "AOTInductorGetLastError");
	for (int cpu = 0; cpu < 2; cpu++) {
		const char *text = "";
		void *container = NULL;
		int failed = create(&container, 1, cpu, NULL);
		why(&text);
		printf("%s: %d: %s\n", cpu ? "cpu" : "cuda", failed, text);
	}
	return 0;
}
