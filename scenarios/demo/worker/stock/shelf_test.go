package stock

import "testing"

func TestTakeRefusesWhatIsNotThere(t *testing.T) {
	shelf := NewShelf(map[string]int{"apple": 1})
	if err := shelf.Take("apple", 2); err == nil {
		t.Fatal("two apples came from one")
	}
}
