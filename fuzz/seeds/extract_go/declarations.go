//go:build linux && !cgo

// Package depot keeps parcels.
package depot

import (
	"fmt"
	. "math"
	names "strings"
	_ "embed"
)

const (
	Small Size = iota
	Large
)

var count, limit = 0, int(Pi)

type Size uint8

type Carrier interface {
	Carry(p *Parcel[int]) (cost float64, err error)
	~int | fmt.Stringer
}

type Parcel[T any] struct {
	*Label
	Size  `json:"size"`
	items map[string][]T
	next  func(T) chan<- T
}

type Label = struct{ text string }

func (p *Parcel[T]) Add(key string, items ...T) (n int) {
	defer func() { n = recover().(int) }()
	p.items[key] = append(p.items[key], items...)
	return len(names.TrimSpace(p.text))
}

func New[T any](text string) *Parcel[T] { return &Parcel[T]{Label: &Label{text}, items: map[string][]T{}} }
