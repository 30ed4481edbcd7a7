package steps

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
)

// TestProductsBroadcast: batches that one operand lacks, or has with size 1, on the
// device of fibers.
func TestProductsBroadcast(t *testing.T) {
	runPrograms(t, map[string]string{
		"batches": `program @p {
			%x = parameter "x" : f32[3,4]
			%y = parameter "y" : f32[2,4,5]
			%z = parameter "z" : f32[3,1,5,3]
			return matmul(%x, %y), matmul(%y, %z), matmul(permute(%y, [0,2,1]), permute(%x, [1,0]))
		}`,
	})
}

// TestProductsReadViews counts what products take of the library, of batches and
// views as models have them, and what is copied for it.
func TestProductsReadViews(t *testing.T) {
	for _, c := range []struct {
		name, params, body string
		products           []string
		others             int
	}{
		{"a layer on sequences", "x f32[4,6,8] w f32[16,8]", "return matmul(%x, permute(%w, [1,0]))", []string{"24×16×8 rows 8 columns 8"}, 0},
		{"a layer on a part of sequences", "x f32[4,12,8] w f32[8,16]", "return matmul(slice(%x, 1, 2, 8, 1), %w)", []string{"6×16×8 by 4: rows 8 +96 rows 16 +0 to +96"}, 0},
		{"a layer on one row of each", "x f32[4,12,8] w f32[8,16]", "return matmul(slice(%x, 1, 2, 3, 1), %w)", []string{"4×16×8 rows 96 rows 16"}, 0},
		{"grouped heads", "q f16[2,3,4,8,16] k f16[2,3,1,8,16]", "return matmul(%q, permute(%k, [0,1,2,4,3]))", []string{"32×8×16 by 6: rows 16 +512 columns 16 +128 to +256"}, 0},
		{"heads of permuted projections", "q f32[2,8,4,16] k f32[2,8,4,16]", "return matmul(permute(%q, [0,2,1,3]), permute(%k, [0,2,3,1]))",
			[]string{"8×8×16 by 4: rows 64 +16 columns 64 +16 to +64", "8×8×16 by 4: rows 64 +16 columns 64 +16 to +64"}, 0},
		{"one key for a batch of heads", "q f32[2,4,8,16] k f32[4,16,8]", "return matmul(%q, %k)",
			[]string{"8×8×16 by 4: rows 16 +128 rows 8 +128 to +64", "8×8×16 by 4: rows 16 +128 rows 8 +128 to +64"}, 0},
		{"many small ones are copied", "q f32[40,8,50,4] k f32[40,50,8,4]", "return matmul(permute(%q, [0,2,1,3]), permute(%k, [0,1,3,2]))", []string{"8×8×4 by 2000: rows 4 +32 columns 4 +32 to +64"}, 1},
		{"a qkv projection", "x f32[2,8,96]", "return matmul(slice(%x, 2, 0, 32, 1), permute(slice(%x, 2, 32, 64, 1), [0,2,1]))", []string{"8×8×32 by 2: rows 96 +768 columns 96 +768 to +64"}, 0},
		{"with an addend", "q f32[2,8,4,16] k f32[2,8,4,16] r f32[2,4,8,8]", "return add(matmul(permute(%q, [0,2,1,3]), permute(%k, [0,2,3,1])), mul(%r, %r))",
			[]string{"8×8×16 by 4: rows 64 +16 columns 64 +16 to +64", "8×8×16 by 4: rows 64 +16 columns 64 +16 to +64"}, 1},
		{"rows backwards", "x f32[6,8] w f32[8,16]", "return matmul(flip(%x, [0]), %w)", []string{"6×16×8 rows 8 rows 16"}, 1},
	} {
		var text strings.Builder
		text.WriteString("program @p {\n")
		for f := strings.Fields(c.params); len(f) > 0; f = f[2:] {
			fmt.Fprintf(&text, "%%%s = parameter %q : %s\n", f[0], f[0], f[1])
		}
		p, err := graph.Parse(text.String() + c.body + "\n}")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		s, err := Lower(p, Options{Limits: limits, Product: new(library).product})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var products []string
		others := 0
		for i := range s.Steps {
			q := s.Steps[i].Product
			if q == nil {
				others++
				continue
			}
			lies := func(m Matrix) string {
				how := "rows"
				if m.Trans {
					how = "columns"
				}
				if q.Batch == 1 {
					return fmt.Sprintf(" %s %d", how, m.LD)
				}
				return fmt.Sprintf(" %s %d +%d", how, m.LD, m.Stride)
			}
			text := fmt.Sprintf("%d×%d×%d", q.M, q.N, q.K)
			if q.Batch > 1 {
				text += fmt.Sprintf(" by %d:", q.Batch)
			}
			text += lies(q.A) + lies(q.B)
			if q.Batch > 1 {
				text += fmt.Sprintf(" to +%d", q.Stride)
			}
			products = append(products, text)
		}
		if !slices.Equal(products, c.products) || others != c.others {
			t.Errorf("%s: %q and %d other steps, want %q and %d", c.name, products, others, c.products, c.others)
		}
	}
}
