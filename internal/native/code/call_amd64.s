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
