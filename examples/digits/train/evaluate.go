package train

import (
	"context"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
)

// Evaluation is how well a model does on the test images.
type Evaluation struct {
	Loss     float64
	Right    int
	Images   int
	Accuracy float64 // from 0 to 1
	// Confusion counts the images by label and then by prediction.
	Confusion [][]int
}

// Evaluate runs the model on the test images, in one graph, and waits.
func (t *Trainer) Evaluate(ctx context.Context) (Evaluation, error) {
	t.model.SetTraining(false)
	logits := t.model.Forward(t.x)
	loss, predicted := logits.CrossEntropy(t.y), logits.Argmax(loris.Dim(1))
	if err := loris.Sync(ctx, loss, predicted); err != nil {
		return Evaluation{}, err
	}
	e := Evaluation{Images: t.test.Len(), Confusion: make([][]int, digits.Classes)}
	var err error
	if e.Loss, err = loss.Item(ctx); err != nil {
		return e, err
	}
	classes, err := predicted.Int64s(ctx)
	if err != nil {
		return e, err
	}
	for i := range e.Confusion {
		e.Confusion[i] = make([]int, digits.Classes)
	}
	for i, label := range t.test.Labels {
		e.Confusion[label][classes[i]]++
		if classes[i] == label {
			e.Right++
		}
	}
	e.Accuracy = float64(e.Right) / float64(e.Images)
	return e, nil
}
