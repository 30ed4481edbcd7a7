/* The MPI library's own all-reduce, called as a C program calls it: see the command's documentation. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const long sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20};

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	int level, rank;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		long bytes = sizes[k];
		int warm = bytes <= 1 << 10 ? 300 : bytes <= 1 << 20 ? 20 : 3;
		int n = bytes <= 1 << 10 ? 2000 : bytes <= 1 << 20 ? 100 : 8;
		float *x, *y;
		double *times = malloc(n * sizeof *times);
		MPI_Alloc_mem(bytes, MPI_INFO_NULL, &x);
		MPI_Alloc_mem(bytes, MPI_INFO_NULL, &y);
		memset(x, 0, bytes);
		memset(y, 0, bytes);
		for (int i = -warm; i < n; i++) {
			double begun = now();
			MPI_Allreduce(x, y, bytes / sizeof *x, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
			if (i >= 0)
				times[i] = now() - begun;
		}
		qsort(times, n, sizeof *times, ascending);
		if (rank == 0)
			printf("result all_reduce/%ld - %.3f %.3f\n", bytes, times[n / 2], times[0]);
		MPI_Free_mem(x);
		MPI_Free_mem(y);
		free(times);
	}
	MPI_Finalize();
	return 0;
}
