module ottla.example/lesson

go 1.22
