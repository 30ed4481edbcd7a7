// Calls of vector functions through pointers, and their errors against wider ones.

void *drive_lookup(const char *symbol);
void drive_call(void *f, const char *vector, int args, const void *x, const void *y, void *out, long n);

void *drive_reference(const char *name, int size, const void *x, const void *y, long n);
double drive_worst(const void *refs, int size, const void *got, long n, double slack, long *at);
double drive_value(const void *refs, int size, long i);
