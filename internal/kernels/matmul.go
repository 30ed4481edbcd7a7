package kernels

// The matrix product of integers (that of floats is in package gemm) works on
// packed operands: the left one in panels of MR rows and the right one in panels
// of NR columns, each panel holding its MR or NR elements of k after k, so that
// the innermost loop reads both in order whatever the strides of the operands
// were. A 2×4 tile of results and its operands fit in the sixteen vector registers of amd64 and the
// thirty-two of arm64; a 4×4 tile spills on amd64 and is three times slower.
const (
	MR = 2
	NR = 4
	// kBlock bounds the depth of one pass, so that a panel of each operand stays
	// in the first-level cache.
	kBlock = 512
)

// PackedLen returns the elements of a packed operand with n rows or columns and
// depth k, in panels of the given width.
func PackedLen(n, k, width int) int { return (n + width - 1) / width * width * k }

// Pack packs panels lo..hi-1 of an operand with n rows (for MR; columns for NR)
// and depth k: element (i, p) is src[off+i·step+p·kStep]. The last panel is
// filled up with zeros. dst is the whole packed operand.
func Pack[T Integer](dst, src []T, width, n, k, off, step, kStep, lo, hi int) {
	for panel := lo; panel < hi; panel++ {
		out := dst[panel*width*k : (panel+1)*width*k]
		rows := min(width, n-panel*width)
		if rows < width {
			clear(out)
		}
		base := off + panel*width*step
		if step == 1 && rows == width {
			for p := range k {
				from := src[base+p*kStep:][:width]
				copy(out[p*width:], from)
			}
			continue
		}
		for i := range rows {
			pos := base + i*step
			for p := i; p < len(out); p += width {
				out[p] = src[pos]
				pos += kStep
			}
		}
	}
}

// MatMul sets the part of the dense m×n matrix c that lies in row panels
// rowLo..rowHi-1 and column panels colLo..colHi-1 to the product of the packed
// operands.
func MatMul[T Integer](c, a, b []T, m, n, k, rowLo, rowHi, colLo, colHi int) {
	for k0 := 0; k0 == 0 || k0 < k; k0 += kBlock {
		kc := min(kBlock, k-k0)
		for panel := rowLo; panel < rowHi; panel++ {
			row := panel * MR
			pa := a[(panel*k+k0)*MR:][:kc*MR]
			rows := min(MR, m-row)
			for col := colLo * NR; col < min(colHi*NR, n); col += NR {
				pb := b[col*k+k0*NR:][:kc*NR]
				var tile [MR * NR]T
				multiply(&tile, pa, pb)
				store(c[row*n+col:], &tile, n, rows, min(NR, n-col), k0 > 0)
			}
		}
	}
}

// multiply is the innermost loop: it sets tile to the product of two panels of
// equal depth.
func multiply[T Integer](tile *[MR * NR]T, a, b []T) {
	var c00, c01, c02, c03, c10, c11, c12, c13 T
	for len(a) >= 2*MR && len(b) >= 2*NR {
		x, y := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c00 += x * b0
		c01 += x * b1
		c02 += x * b2
		c03 += x * b3
		c10 += y * b0
		c11 += y * b1
		c12 += y * b2
		c13 += y * b3
		x, y = a[2], a[3]
		b0, b1, b2, b3 = b[4], b[5], b[6], b[7]
		c00 += x * b0
		c01 += x * b1
		c02 += x * b2
		c03 += x * b3
		c10 += y * b0
		c11 += y * b1
		c12 += y * b2
		c13 += y * b3
		a, b = a[2*MR:], b[2*NR:]
	}
	if len(a) >= MR && len(b) >= NR {
		x, y := a[0], a[1]
		c00 += x * b[0]
		c01 += x * b[1]
		c02 += x * b[2]
		c03 += x * b[3]
		c10 += y * b[0]
		c11 += y * b[1]
		c12 += y * b[2]
		c13 += y * b[3]
	}
	*tile = [MR * NR]T{c00, c01, c02, c03, c10, c11, c12, c13}
}

// store writes the valid part of a tile, or adds it to what is there.
func store[T Integer](c []T, tile *[MR * NR]T, ldc, rows, cols int, add bool) {
	for i := range rows {
		row := c[i*ldc:][:cols]
		t := tile[i*NR:][:cols]
		if add {
			for j, v := range t {
				row[j] += v
			}
			continue
		}
		copy(row, t)
	}
}

// MatVec sets rows lo..hi-1 of the dense m×n matrix c to the product of two
// strided operands without packing: element (i, p) of the left one is
// a[aOff+i·aStep+p·aK], element (p, j) of the right one b[bOff+p·bK+j·bStep]. It
// is for products with too few rows or columns for packing to pay.
func MatVec[T Integer](c, a, b []T, n, k, aOff, aStep, aK, bOff, bK, bStep, lo, hi int) {
	for i := lo; i < hi; i++ {
		row := c[i*n : (i+1)*n]
		pa := aOff + i*aStep
		if bStep == 1 && n > 1 {
			vecMat(row, a, b, pa, aK, bOff, bK, k)
			continue
		}
		for j := range row {
			row[j] = dot(a, b, pa, aK, bOff+j*bStep, bK, k)
		}
	}
}

// vecMat sets row to the product of a vector with a matrix of dense rows.
func vecMat[T Integer](row, a, b []T, pa, aK, pb, bK, k int) {
	var sums [ReduceRoom]T
	for len(row) > 0 {
		acc := sums[:min(len(row), ReduceRoom)]
		clear(acc)
		p := 0
		for ; p+4 <= k; p += 4 {
			x, y := pa+p*aK, pb+p*bK
			axpy4(acc, a[x], a[x+aK], a[x+2*aK], a[x+3*aK], b[y:], b[y+bK:], b[y+2*bK:], b[y+3*bK:])
		}
		for ; p < k; p++ {
			axpy(acc, a[pa+p*aK], b[pb+p*bK:])
		}
		copy(row, acc)
		row = row[len(acc):]
		pb += len(acc)
	}
}

// axpy4 adds four scaled rows to the sums, which it loads and stores once.
func axpy4[T Integer](acc []T, x0, x1, x2, x3 T, b0, b1, b2, b3 []T) {
	n := len(acc)
	b0, b1, b2, b3 = b0[:n], b1[:n], b2[:n], b3[:n]
	for j := range acc {
		acc[j] += (x0*b0[j] + x1*b1[j]) + (x2*b2[j] + x3*b3[j])
	}
}

func axpy[T Integer](acc []T, x T, b []T) {
	b = b[:len(acc)]
	for j := range acc {
		acc[j] += x * b[j]
	}
}

func dot[T Integer](a, b []T, pa, aK, pb, bK, k int) T {
	var s0, s1, s2, s3 T
	if aK == 1 && bK == 1 {
		x, y := a[pa:pa+k], b[pb:pb+k]
		for len(x) >= 4 && len(y) >= 4 {
			s0 += x[0] * y[0]
			s1 += x[1] * y[1]
			s2 += x[2] * y[2]
			s3 += x[3] * y[3]
			x, y = x[4:], y[4:]
		}
		for i := range x {
			s0 += x[i] * y[i]
		}
		return (s0 + s1) + (s2 + s3)
	}
	for range k {
		s0 += a[pa] * b[pb]
		pa += aK
		pb += bK
	}
	return s0
}
