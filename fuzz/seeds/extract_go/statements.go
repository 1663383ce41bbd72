package main

func main() {
outer:
	for i, key := range []string{"a", "b"} {
		switch v := any(key).(type) {
		case string, []byte:
			if x, ok := v.(interface{ Len() int }); ok && x.Len() > i {
				continue outer
			}
		default:
			goto done
		}
		select {
		case m := <-make(chan int):
			go func(n int) { _ = n << m }(m)
		default:
		}
	}
done:
	a, b := [...]int{1, 2: 3}, struct{ x, y int }{1, 2}
	a[0], b.x = b.x, a[len(a)-1]
}
