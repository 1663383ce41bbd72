// Package stock counts what lies on the shelf.
package stock

import "fmt"

// Shelf holds the pieces of each product.
type Shelf struct {
	pieces map[string]int
}

// NewShelf returns a shelf with the given pieces on it.
func NewShelf(pieces map[string]int) *Shelf {
	return &Shelf{pieces: pieces}
}

// Take removes pieces, or fails when there are too few.
func (s *Shelf) Take(sku string, count int) error {
	if s.pieces[sku] < count {
		return fmt.Errorf("only %d of %s left", s.pieces[sku], sku)
	}
	s.pieces[sku] -= count
	return nil
}
