package main

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plotRows draws the ratio of each workload to the best peer, by threads, with
// what it must and should be.
func plotRows(path string, rows []row) error {
	p := plot.New()
	p.Title.Text = "Time of Loris over that of the best peer (lower is better)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	var labels []string
	place := map[string]int{}
	points := map[int]plotter.XYs{}
	var order []int
	var must, aim plotter.XYs
	for _, r := range rows {
		if r.Ratio <= 0 {
			continue
		}
		at, ok := place[r.Name]
		if !ok {
			at = len(labels)
			place[r.Name] = at
			labels = append(labels, r.Name)
			must = append(must, plotter.XY{X: float64(at), Y: r.Must})
			aim = append(aim, plotter.XY{X: float64(at), Y: r.Aim})
		}
		if points[r.Threads] == nil {
			order = append(order, r.Threads)
		}
		points[r.Threads] = append(points[r.Threads], plotter.XY{X: float64(at), Y: r.Ratio})
	}
	if len(labels) == 0 {
		return fmt.Errorf("%s: no peer ran, so there is nothing to plot", path)
	}
	for i, n := range order {
		if err := scatter(p, fmt.Sprintf("%d threads", n), points[n], i); err != nil {
			return err
		}
	}
	if err := marks(p, "must", must, color.RGBA{R: 200, A: 255}); err != nil {
		return err
	}
	if err := marks(p, "aim", aim, color.RGBA{G: 140, A: 255}); err != nil {
		return err
	}
	p.NominalX(labels...)
	p.X.Tick.Label.Rotation = math.Pi / 4
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	p.X.Min, p.X.Max = -0.5, float64(len(labels))-0.5
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p.Save(vg.Length(max(len(labels), 6))*1.6*vg.Centimeter+4*vg.Centimeter, 14*vg.Centimeter, path)
}

// scatter adds the ratios of one number of threads.
func scatter(p *plot.Plot, name string, xy plotter.XYs, i int) error {
	s, err := plotter.NewScatter(xy)
	if err != nil {
		return err
	}
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}
	s.GlyphStyle = draw.GlyphStyle{Color: color.RGBA{B: uint8(255 - 90*(i%3)), A: 255}, Radius: vg.Points(3.5), Shape: shapes[i%len(shapes)]}
	p.Add(s)
	p.Legend.Add(name, s)
	return nil
}

// marks adds a short line for each workload.
func marks(p *plot.Plot, name string, xy plotter.XYs, c color.Color) error {
	for i, v := range xy {
		l, err := plotter.NewLine(plotter.XYs{{X: v.X - 0.35, Y: v.Y}, {X: v.X + 0.35, Y: v.Y}})
		if err != nil {
			return err
		}
		l.Color, l.Width = c, vg.Points(1.5)
		p.Add(l)
		if i == 0 {
			p.Legend.Add(name, l)
		}
	}
	return nil
}
