module example.org/shop/worker

go 1.23
