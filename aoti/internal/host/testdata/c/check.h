#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

// CHECK returns the failed condition as the test's text.
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			return __FILE__ ":" TEXT(__LINE__) ": " #cond;                                                 \
	} while (0)
#define OK(call) CHECK((call) == 0)
#define FAILS(call, text)                                                                                              \
	do {                                                                                                           \
		CHECK((call) != 0);                                                                                    \
		CHECK(strstr(lori_error_text(), text));                                                                \
	} while (0)

#endif
