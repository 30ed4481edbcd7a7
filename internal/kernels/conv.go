package kernels

// Conv is the geometry of a convolution over three spatial dimensions (fewer
// are padded with leading ones). Dense layouts: input
// [N, Groups·CIn, In…], weight [Groups·COut, CIn, Kernel…], output
// [N, Groups·COut, Out…]. Output position o meets input position
// (o·Stride − Pad + k·Dilation) / InStride at kernel position k, where that is
// whole and inside; InStride spreads the input out, as transposed convolution
// does.
type Conv struct {
	N, Groups, CIn, COut  int
	In, Kernel, Out       [3]int
	Stride, Pad, Dilation [3]int
	InStride              [3]int
}

// ConvBlock is the number of output positions that one unit of Convolve makes.
const ConvBlock = 64

// Depth returns the number of products in each output element.
func (g *Conv) Depth() int { return g.CIn * g.Kernel[0] * g.Kernel[1] * g.Kernel[2] }

func (g *Conv) positions() int { return g.Out[0] * g.Out[1] * g.Out[2] }

func (g *Conv) blocks() int { return (g.positions() + ConvBlock - 1) / ConvBlock }

// Units returns the number of independent units of work.
func (g *Conv) Units() int { return g.N * g.Groups * g.blocks() }

// Scratch returns the elements of scratch that Convolve needs.
func (g *Conv) Scratch() int { return PackedLen(ConvBlock, g.Depth(), NR) }

// PackedWeights returns the elements of the packed weights.
func (g *Conv) PackedWeights() int { return g.Groups * PackedLen(g.COut, g.Depth(), MR) }

// PackWeights packs the weights of groups lo..hi-1 for Convolve.
func PackWeights[A, T Number](dst []A, weight []T, g *Conv, lo, hi int) {
	k := g.Depth()
	n := PackedLen(g.COut, k, MR)
	for i := lo; i < hi; i++ {
		Pack(dst[i*n:(i+1)*n], weight, MR, g.COut, k, i*g.COut*k, k, 1, 0, (g.COut+MR-1)/MR)
	}
}

// Convolve computes units lo..hi-1 of the output: for one image, one group and
// one block of output positions it gathers the input elements that each
// position meets into a packed matrix and multiplies the packed weights with it.
// bias has an element for each output channel, or is nil.
func Convolve[T, A Number](dst, input []T, weight []A, bias []T, g *Conv, scratch []A, lo, hi int) {
	k, positions, blocks := g.Depth(), g.positions(), g.blocks()
	panels := PackedLen(g.COut, k, MR)
	for u := lo; u < hi; u++ {
		p0 := u % blocks * ConvBlock
		grp := u / blocks % g.Groups
		img := u / blocks / g.Groups
		n := min(ConvBlock, positions-p0)
		gather(scratch, input, g, (img*g.Groups+grp)*g.CIn, p0, n)
		out := dst[(img*g.Groups+grp)*g.COut*positions:][:g.COut*positions]
		w := weight[grp*panels : (grp+1)*panels]
		for row := 0; row < g.COut; row += MR {
			rows := min(MR, g.COut-row)
			if bias != nil {
				for i := range rows {
					fill(out[(row+i)*positions+p0:][:n], bias[grp*g.COut+row+i])
				}
			} else if k == 0 {
				for i := range rows {
					clear(out[(row+i)*positions+p0:][:n])
				}
			}
			for k0 := 0; k0 < k; k0 += kBlock {
				kc := min(kBlock, k-k0)
				pa := w[row*k+k0*MR:][:kc*MR]
				for col := 0; col < n; col += NR {
					var tile [MR * NR]A
					multiply(&tile, pa, scratch[col*k+k0*NR:][:kc*NR])
					store(out[row*positions+p0+col:], &tile, positions, rows, min(NR, n-col), bias != nil || k0 > 0)
				}
			}
		}
	}
}

// gather fills scratch with the packed right operand of output positions
// p0..p0+n-1: panels of NR positions, each CIn·Kernel deep.
func gather[A, T Number](scratch []A, input []T, g *Conv, channel, p0, n int) {
	k := g.Depth()
	size := g.In[0] * g.In[1] * g.In[2]
	clear(scratch[:PackedLen(n, k, NR)])
	for j := range n {
		p := p0 + j
		o := [3]int{p / (g.Out[1] * g.Out[2]), p / g.Out[2] % g.Out[1], p % g.Out[2]}
		var at [3]int
		for d := range at {
			at[d] = o[d]*g.Stride[d] - g.Pad[d]
		}
		col := scratch[j/NR*NR*k+j%NR:]
		pos := 0
		for c := range g.CIn {
			x := input[(channel+c)*size:][:size]
			for k0 := range g.Kernel[0] {
				i0, ok0 := g.source(0, at[0]+k0*g.Dilation[0])
				for k1 := range g.Kernel[1] {
					i1, ok1 := g.source(1, at[1]+k1*g.Dilation[1])
					if !ok0 || !ok1 {
						pos += g.Kernel[2] * NR
						continue
					}
					row := x[(i0*g.In[1]+i1)*g.In[2]:][:g.In[2]]
					pos = gatherRow(col, row, g, at[2], pos)
				}
			}
		}
	}
}

func gatherRow[A, T Number](col []A, row []T, g *Conv, at, pos int) int {
	step := g.Dilation[2]
	if g.InStride[2] == 1 {
		for range g.Kernel[2] {
			if uint(at) < uint(len(row)) {
				col[pos] = A(row[at])
			}
			at += step
			pos += NR
		}
		return pos
	}
	for range g.Kernel[2] {
		if i, ok := g.source(2, at); ok {
			col[pos] = A(row[i])
		}
		at += step
		pos += NR
	}
	return pos
}

// source returns where in the input a position of the spread-out input is.
func (g *Conv) source(d, at int) (int, bool) {
	if s := g.InStride[d]; s != 1 {
		if at%s != 0 {
			return 0, false
		}
		at /= s
	}
	return at, uint(at) < uint(g.In[d])
}
