package workloads

import "testing"

// The workloads that take seconds, in sizes that take none: they run from the start, what they train
// is other than at first, and results are numbers.
func TestLargeInSmall(t *testing.T) {
	for _, w := range []*Workload{
		gpt2Training(gptSize{layers: 1, dim: 16, heads: 2, vocab: 40, batch: 2, length: 8}),
		vitTraining(vitSize{layers: 1, dim: 16, heads: 2, image: 8, patch: 4, classes: 5, batch: 2}),
		resnet50Training([]stage{{1, 8, 1}, {2, 16, 2}}, 32, 2),
		llamaDecode(llamaSize{layers: 1, dim: 16, heads: 2, hidden: 32, vocab: 40, context: 8, group: 8}),
		longAttention(2, 2, 16, 8),
		embeddingTraining(100, 8, 16),
	} {
		t.Run(w.Name, func(t *testing.T) {
			second := results(t, w)
			w.Runs++
			third := results(t, w)
			same := true
			for i, v := range third {
				if v != v || v-v != 0 {
					t.Fatalf("result %d is %v", i, v)
				}
				same = same && v == second[i]
			}
			if same != (w.Name == "attention-long") {
				t.Errorf("results of two runs and of three are the same: %v", same)
			}
		})
	}
}
