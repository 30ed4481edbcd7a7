#include "textflag.h"

// jumpingClock is called in place of the kernel's clock_gettime, with C's convention: DI is the clock,
// SI where its time goes. The wall clock, which is 0, is ahead by so many seconds.
TEXT jumpingClock<>(SB), NOSPLIT|NOFRAME, $0
	MOVL $228, AX // SYS_clock_gettime
	SYSCALL
	TESTL DI, DI
	JNE  done
	MOVQ ·ahead(SB), DX
	ADDQ DX, 0(SI)
done:
	RET

// func installClock()
TEXT ·installClock(SB), NOSPLIT, $0
	LEAQ jumpingClock<>(SB), AX
	MOVQ AX, runtime·vdsoClockgettimeSym(SB)
	RET
