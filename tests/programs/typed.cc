// typed.cc - functions of classes and templates, to be looked at by their demangled names. Prints a number that depends on all.
#include <cstdio>
#include <string>
#include <vector>

#define KEPT __attribute__((noinline))

namespace acme {

struct V {
	double x, y;
};

enum class Mode : signed char { A = -1, B };

class Widget {
	int n;

public:
	Widget(int n) : n(n) {}
	virtual ~Widget() {}
	KEPT int poke(int by, const char *why)
	{
		__asm__ volatile("" : : "r"(why) : "memory");
		return n += by;
	}
	KEPT long poke(double d, long l) const
	{
		__asm__ volatile("" : : : "memory");
		return n + l + (long)d;
	}
	KEPT std::string name(bool b)
	{
		__asm__ volatile("" : : "r"(this) : "memory");
		return b ? "yes" : "no";
	}
	KEPT static int count(unsigned char c)
	{
		__asm__ volatile("" : : : "memory");
		return c;
	}
	KEPT operator int() const
	{
		__asm__ volatile("" : : : "memory");
		return n;
	}
};

template <class T> KEPT T twice(T t)
{
	__asm__ volatile("" : : : "memory");
	return t * 2;
}

KEPT int takes(std::string s, std::string const &r, V v, std::vector<int> w, int last)
{
	return s.size() + r.size() + w.size() + last + v.x;
}

KEPT bool mode(Mode m, int &r)
{
	__asm__ volatile("" : : : "memory");
	return m == Mode::A && r;
}

KEPT int operator+(Widget const &a, V v)
{
	__asm__ volatile("" : : : "memory");
	return int(a) + v.x;
}

}

namespace {

KEPT int hidden(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

}

int main(int argc, char **)
{
	using namespace acme;
	Widget w(1);
	int i = 3;
	long sum = w.poke(1, "because") + w.poke(2.0, 5L) + w.name(true).size() + Widget::count(200);
	sum += twice(4) + twice(5L) + takes("a", "b", { 1, 2 }, { 1, 2 }, 7) + mode(Mode::A, i) + hidden(argc) + (w + V { 1, 2 });
	printf("%ld\n", sum);
	return 0;
}
