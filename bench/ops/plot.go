package main

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plotRows draws the ratios of each category as a box.
func plotRows(path string, rows []row) error {
	values := map[string]plotter.Values{}
	var names []string
	for _, r := range rows {
		if r.Ratio > 0 {
			if values[r.Category] == nil {
				names = append(names, r.Category)
			}
			values[r.Category] = append(values[r.Category], math.Log10(r.Ratio))
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no row has a ratio, so there is nothing to plot", path)
	}
	slices.Sort(names)
	p := plot.New()
	p.Title.Text = "Time of Loris over PyTorch's, by category (lower is better)"
	p.Y.Label.Text = "log10 of the ratio"
	for i, name := range names {
		b, err := plotter.NewBoxPlot(vg.Points(14), float64(i), values[name])
		if err != nil {
			return err
		}
		p.Add(b)
	}
	p.Add(plotter.NewGrid())
	p.NominalX(names...)
	p.X.Tick.Label.Rotation = math.Pi / 4
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	return p.Save(vg.Length(max(len(names), 6))*1.6*vg.Centimeter+4*vg.Centimeter, 14*vg.Centimeter, path)
}
