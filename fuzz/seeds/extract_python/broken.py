def f(:
  x = (1, [2, {3
class
    def m(self
return """open
@
from import x
