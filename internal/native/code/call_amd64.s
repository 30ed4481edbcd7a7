//go:build linux && amd64 && !noasm

#include "textflag.h"

// func call(entry uintptr, frame unsafe.Pointer)
//
// Generated code gets the frame in DI. It keeps R14 (the goroutine), BP and SP;
// the frame declared here makes the assembler save BP. It uses no stack: what it
// spills goes to memory that its frame points to.
TEXT ·call(SB), 0, $8-16
	MOVQ frame+8(FP), DI
	MOVQ entry+0(FP), AX
	CALL AX
	VZEROUPPER
	RET

// func callFlushing(entry uintptr, frame unsafe.Pointer)
//
// It is call with the bits of MXCSR set that take subnormal operands as zero (6)
// and give zero for subnormal results (15). The runtime expects MXCSR as it was,
// and can't stop the goroutine in between.
TEXT ·callFlushing(SB), 0, $16-16
	MOVQ    frame+8(FP), DI
	MOVQ    entry+0(FP), AX
	STMXCSR was-8(SP)
	MOVL    was-8(SP), CX
	ORL     $0x8040, CX
	MOVL    CX, now-16(SP)
	LDMXCSR now-16(SP)
	CALL    AX
	LDMXCSR was-8(SP)
	VZEROUPPER
	RET
