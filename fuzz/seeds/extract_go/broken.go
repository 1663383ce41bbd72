package broken

import "

type T struct { f func(
func (t *T[) m( {
	x := T{ y: [ }
	if x := ; {
