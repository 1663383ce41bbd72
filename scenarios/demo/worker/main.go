// The worker reads reservations from standard input, one JSON object a line, and takes the goods from the shelf.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"example.org/shop/worker/stock"
)

// Reservation is what the service queued for one line of an order.
type Reservation struct {
	Order int    `json:"order"`
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

func main() {
	shelf := stock.NewShelf(map[string]int{"apple": 100, "bread": 20, "cheese": 10})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := handle(shelf, lines.Bytes()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func handle(shelf *stock.Shelf, line []byte) error {
	var wanted Reservation
	if err := json.Unmarshal(line, &wanted); err != nil {
		return fmt.Errorf("reservation: %w", err)
	}
	return shelf.Take(wanted.SKU, wanted.Count)
}
