package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/examples/digits/train"
)

func newPredict() *cobra.Command {
	return dataCommand("predict", "Predict with the weights of an example", newPredictDigits())
}

// prediction is what a model says of one test image.
type prediction struct {
	Image         int       `json:"image"`
	Label         int64     `json:"label"`
	Predicted     int64     `json:"predicted"`
	Probabilities []float32 `json:"probabilities"`
}

func newPredictDigits() *cobra.Command {
	var weights, device string
	var image int
	var asJSON bool
	c := &cobra.Command{
		Use:   "digits",
		Short: "Read the test images of the digits example",
		Long: `Read the 360 test images with the weights that loris train digits wrote and list
those that are read wrong, or show one of them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if weights == "" {
				return command.Usagef("--weights is missing")
			}
			d, _, err := command.ParseDevice(device)
			if err != nil {
				return err
			}
			_, test, err := train.Data()
			if err != nil {
				return err
			}
			if image >= test.Len() || image < -1 {
				return fmt.Errorf("there is no test image %d: they are 0 to %d", image, test.Len()-1)
			}
			all, err := predict(c.Context(), weights, d, test)
			if err != nil {
				return err
			}
			if image >= 0 {
				all = all[image : image+1]
			}
			switch {
			case asJSON:
				return command.PrintJSON(c.OutOrStdout(), all)
			case image >= 0:
				return printImage(c.OutOrStdout(), test.Image(image), all[0])
			}
			return printMistakes(c.OutOrStdout(), all)
		},
	}
	c.Flags().StringVar(&weights, "weights", "", "safetensors `file` of the weights")
	c.Flags().IntVar(&image, "image", -1, "number of one test image to show")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	command.DeviceFlag(c, &device)
	return c
}

// predict runs the model on all images.
func predict(ctx context.Context, weights string, d loris.Device, images *digits.Dataset) (all []prediction, err error) {
	s, err := loris.New(loris.WithDevice(d))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	m, err := train.LoadModel(ctx, weights, s.With())
	if err != nil {
		return nil, err
	}
	x := s.With().FromSlice(images.Pixels, images.Len(), digits.Features)
	probabilities := m.Forward(x).Softmax(1)
	best := probabilities.Argmax(loris.Dim(1))
	if err := s.Sync(ctx, probabilities, best); err != nil {
		return nil, err
	}
	classes, err := best.Int64s(ctx)
	if err != nil {
		return nil, err
	}
	p, err := probabilities.Float32s(ctx)
	if err != nil {
		return nil, err
	}
	for i, label := range images.Labels {
		row := p[i*digits.Classes : (i+1)*digits.Classes]
		all = append(all, prediction{Image: i, Label: label, Predicted: classes[i], Probabilities: row})
	}
	return all, nil
}

func printMistakes(w io.Writer, all []prediction) error {
	right := 0
	for _, p := range all {
		if p.Predicted == p.Label {
			right++
			continue
		}
		fmt.Fprintf(w, "image %3d is a %d, read as a %d (%.1f %%)\n", p.Image, p.Label, p.Predicted, 100*p.Probabilities[p.Predicted])
	}
	_, err := fmt.Fprintf(w, "%d of %d right (%.2f %%)\n", right, len(all), 100*float64(right)/float64(len(all)))
	return err
}

// printImage draws the pixels and lists the three likeliest digits.
func printImage(w io.Writer, pixels []float32, p prediction) error {
	const ink = " .:-=+*%@#"
	for row := range 8 {
		for _, v := range pixels[8*row : 8*row+8] {
			c := ink[int(9*v)]
			fmt.Fprintf(w, "%c%c", c, c)
		}
		fmt.Fprintln(w)
	}
	order := make([]int, len(p.Probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Probabilities[b], p.Probabilities[a]) })
	for _, d := range order[:3] {
		fmt.Fprintf(w, "%d  %5.1f %%\n", d, 100*p.Probabilities[d])
	}
	_, err := fmt.Fprintf(w, "test image %d is a %d\n", p.Image, p.Label)
	return err
}
