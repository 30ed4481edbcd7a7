// Package angles has angles that are hard to reduce by multiples of π/2, for tests.
package angles

// All are x with its sine, cosine and tangent, from sums of 2,200 bits: the float that is nearest to a
// multiple of π/2 of all, the largest, and those around which other reductions begin.
var All = [][4]float64{
	{0x1.6ac5b262ca1ffp+849, 0x1.0000000000000p+0, -0x1.14ae72e6ba22fp-61, -0x1.d9ba9a7975636p+60},
	{0x1.0f0cf064dd592p+73, -0x1.b453ab76bf397p-1, 0x1.0be2cef01c8f4p-1, -0x1.a0f79c1b6b257p+0},
	{-0x1.0f0cf064dd592p+73, 0x1.b453ab76bf397p-1, 0x1.0be2cef01c8f4p-1, 0x1.a0f79c1b6b257p+0},
	{0x1.0000000000000p+1023, 0x1.205248cbdb760p-1, -0x1.a719f26c232bfp-1, -0x1.5ce6b4c0d02a3p-1},
	{0x1.fffffffffffffp+1023, 0x1.452fc98b34e97p-8, -0x1.fffe62ecfab75p-1, -0x1.4530cfe729484p-8},
	{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1.0000000000000p+0, -0x1.1a62633145c07p-53},
	{0x1.921fb54442d18p+0, 0x1.0000000000000p+0, 0x1.1a62633145c07p-54, 0x1.d02967c31cdb5p+53},
	{0x1.2d97c7f3321d2p+2, -0x1.0000000000000p+0, -0x1.a79394c9e8a0ap-53, 0x1.3570efd768923p+52},
	{0x1.7f7ec53a8d491p+21, -0x1.eacd7c60e9693p-33, 0x1.0000000000000p+0, -0x1.eacd7c60e9693p-33},
	{0x1.0000000000000p+36, 0x1.f8993cb9a6586p-1, 0x1.5af85f5920329p-3, 0x1.744cf83a73700p+2},
	{0x1.00068db8bac71p+36, -0x1.b6c4a1725ca83p-1, -0x1.07de53700ddaep-1, 0x1.a9af26c15a488p+0},
	{0x1.fffffffffffffp+35, 0x1.f899115a5b5a1p-1, 0x1.5afc508b6e46ap-3, 0x1.74489d678ce69p+2},
	{0x1.1c37937e08000p+52, -0x1.cdad29f3bc197p-1, -0x1.bab6bd014d7f7p-2, 0x1.0af7146227aa9p+1},
	{0x1.921fb54442d18p-1, 0x1.6a09e667f3bccp-1, 0x1.6a09e667f3bcdp-1, 0x1.fffffffffffffp-1},
	{0x1.921fb54442d19p-1, 0x1.6a09e667f3bcdp-1, 0x1.6a09e667f3bccp-1, 0x1.0000000000001p+0},
	{0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-997, 0x1.0000000000000p+0, 0x1.56e1fc2f8f359p-997},
	{0x1.921fb54442d18p+41, -0x1.1a626322f4c7dp-13, 0x1.ffffffb220c5fp-1, -0x1.1a62634de7b1ap-13},
	{0x1.6300000000000p+8, -0x1.f9bd0307d1de3p-16, -0x1.fffffffc18e4cp-1, 0x1.f9bd030bacc16p-16},
	{0x1.979c000000000p+45, 0x1.d673d0fdf87e3p-1, 0x1.94126a4d9be45p-2, 0x1.2a0e2dc4c465ep+1},
}
