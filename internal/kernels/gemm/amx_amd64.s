//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// Go's assembler has no AMX instructions: these write their bytes. In memory operands the index is the
// distance of rows in bytes.

// Tiles from the left operand: SI or AX, rows CX apart.
#define LOAD_A0(t) BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $(4+t*8); BYTE $0x0E
#define LOAD_A1(t) BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $(4+t*8); BYTE $0x08

// Tiles from the right operand: DI or BX, rows DX apart.
#define LOAD_B0(t) BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $(4+t*8); BYTE $0x17
#define LOAD_B1(t) BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $(4+t*8); BYTE $0x13

// Tile t of the result, 0 to 3: R8+t, rows R12 apart.
#define LOAD_C(t) BYTE $0xC4; BYTE $0x82; BYTE $0x7B; BYTE $0x4B; BYTE $(4+t*8); BYTE $(0x20+t)
#define STORE_C(t) BYTE $0xC4; BYTE $0x82; BYTE $0x7A; BYTE $0x4B; BYTE $(4+t*8); BYTE $(0x20+t)

#define TILEZERO(t) BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x49; BYTE $(0xC0+t*8)
#define TILERELEASE BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0

// Shapes from offset(R13).
#define LDTILECFG(offset) BYTE $0xC4; BYTE $0xC2; BYTE $0x78; BYTE $0x49; BYTE $0x45; BYTE $offset

// Tile c += tile a times tile b.
#define TDPBF16PS(c, a, b) BYTE $0xC4; BYTE $0xE2; BYTE $((15-b)*8+2); BYTE $0x5C; BYTE $(0xC0+c*8+a)

// func amxBF16(p *amxProduct)
TEXT ·amxBF16(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), R13
	MOVQ amxProduct_a(R13), SI
	MOVQ amxProduct_aRow(R13), CX
	MOVQ CX, AX
	SHLQ $4, AX
	ADDQ SI, AX
	MOVQ amxProduct_b(R13), DI
	LEAQ 64(DI), BX
	MOVQ amxProduct_bRow(R13), DX
	MOVQ DX, R15
	SHLQ $4, R15
	MOVQ amxProduct_c(R13), R8
	LEAQ 64(R8), R9
	MOVQ amxProduct_cRow(R13), R12
	MOVQ R12, R10
	SHLQ $4, R10
	ADDQ R8, R10
	LEAQ 64(R10), R11
	MOVQ amxProduct_steps(R13), R14
	TESTQ R14, R14
	JZ   tail
	LDTILECFG(0)

begin:
	CMPQ amxProduct_add(R13), $0
	JE   zero
	LOAD_C(0)
	CMPQ amxProduct_twoCols(R13), $0
	JE   loadDown
	LOAD_C(1)
loadDown:
	CMPQ amxProduct_twoRows(R13), $0
	JE   choose
	LOAD_C(2)
	CMPQ amxProduct_twoCols(R13), $0
	JE   choose
	LOAD_C(3)
	JMP  choose

zero:
	TILEZERO(0)
	CMPQ amxProduct_twoCols(R13), $0
	JE   zeroDown
	TILEZERO(1)
zeroDown:
	CMPQ amxProduct_twoRows(R13), $0
	JE   choose
	TILEZERO(2)
	CMPQ amxProduct_twoCols(R13), $0
	JE   choose
	TILEZERO(3)

choose:
	CMPQ amxProduct_twoRows(R13), $0
	JE   low
	CMPQ amxProduct_twoCols(R13), $0
	JE   tall

square:
	LOAD_A0(4)
	LOAD_B0(6)
	TDPBF16PS(0, 4, 6)
	LOAD_B1(7)
	TDPBF16PS(1, 4, 7)
	LOAD_A1(5)
	TDPBF16PS(2, 5, 6)
	TDPBF16PS(3, 5, 7)
	ADDQ $64, SI
	ADDQ $64, AX
	ADDQ R15, DI
	ADDQ R15, BX
	DECQ R14
	JNZ  square
	JMP  store

tall:
	LOAD_A0(4)
	LOAD_B0(6)
	TDPBF16PS(0, 4, 6)
	LOAD_A1(5)
	TDPBF16PS(2, 5, 6)
	ADDQ $64, SI
	ADDQ $64, AX
	ADDQ R15, DI
	ADDQ R15, BX
	DECQ R14
	JNZ  tall
	JMP  store

low:
	CMPQ amxProduct_twoCols(R13), $0
	JE   single

broad:
	LOAD_A0(4)
	LOAD_B0(6)
	TDPBF16PS(0, 4, 6)
	LOAD_B1(7)
	TDPBF16PS(1, 4, 7)
	ADDQ $64, SI
	ADDQ R15, DI
	ADDQ R15, BX
	DECQ R14
	JNZ  broad
	JMP  store

single:
	LOAD_A0(4)
	LOAD_B0(6)
	TDPBF16PS(0, 4, 6)
	ADDQ $64, SI
	ADDQ R15, DI
	ADDQ R15, BX
	DECQ R14
	JNZ  single

store:
	STORE_C(0)
	CMPQ amxProduct_twoCols(R13), $0
	JE   storeDown
	STORE_C(1)
storeDown:
	CMPQ amxProduct_twoRows(R13), $0
	JE   tail
	STORE_C(2)
	CMPQ amxProduct_twoCols(R13), $0
	JE   tail
	STORE_C(3)

	// What is left of the depth has tiles of other shapes, which begin with the sums so far.
tail:
	CMPQ amxProduct_rest(R13), $0
	JE   done
	CMPQ amxProduct_steps(R13), $0
	JE   rest
	MOVQ $1, amxProduct_add(R13)
rest:
	MOVQ $0, amxProduct_rest(R13)
	MOVQ $1, R14
	LDTILECFG(64)
	JMP  begin

done:
	TILERELEASE
	RET
