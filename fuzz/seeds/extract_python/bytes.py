# café   sep
def f():
	return "🙂\
"
class É: passdef g(): pass