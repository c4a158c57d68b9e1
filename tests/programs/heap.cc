// What C++ programs do with the heap. Sizes of what containers allocate are those of libstdc++.
#include "heap.h"
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

static volatile size_t huge = PTRDIFF_MAX - 1000;

struct Part {
    long values[5];
};
struct Wide {
    alignas(64) char bytes[192];
};
struct Base {
    virtual ~Base() {}
};
struct Derived : Base {
    long more[10];
};

// new in all its forms.
ALONE static Part *makes_one() { return static_cast<Part *>(TAKE(new Part(), sizeof(Part))); }
ALONE static Part *makes_many(size_t n) { return static_cast<Part *>(TAKE(new Part[n], n * sizeof(Part))); }
ALONE static Wide *makes_wide() { return static_cast<Wide *>(TAKE(new Wide, sizeof(Wide))); }
ALONE static Wide *makes_wide_ones(size_t n) { return static_cast<Wide *>(TAKE(new Wide[n], n * sizeof(Wide))); }
ALONE static void *makes_by_operator(size_t n) { return TAKE(::operator new(n), n); }
ALONE static void *makes_without_throwing(size_t n) { return TAKE(::operator new(n, std::nothrow), n); }
ALONE static Base *makes_derived() { return static_cast<Derived *>(TAKE(new Derived, sizeof(Derived))); }
ALONE static void news() {
    for (size_t i = 1; i <= 10; i++) {
        Part *one = makes_one(), *many = makes_many(i);
        Wide *wide = makes_wide(), *wide_ones = makes_wide_ones(i);
        void *plain = makes_by_operator(i), *other = makes_without_throwing(i * 100);
        Base *base = makes_derived();
        if (i % 2) {
            delete static_cast<Part *>(give(one));
            delete[] static_cast<Part *>(give(many));
            delete static_cast<Wide *>(give(wide));
            delete[] static_cast<Wide *>(give(wide_ones));
            ::operator delete(give(plain));
            ::operator delete(give(other), std::nothrow);
            delete static_cast<Base *>(give(base));
        } else if (i % 4) {
            ::operator delete(give(one), sizeof(Part));
            ::operator delete[](give(many), i * sizeof(Part));
            ::operator delete(give(wide), sizeof(Wide), std::align_val_t(alignof(Wide)));
            ::operator delete[](give(wide_ones), i * sizeof(Wide), std::align_val_t(alignof(Wide)));
        }
    }
    delete static_cast<Part *>(nullptr);
}

// An allocator of containers that keeps the account, by the function that uses it.
static thread_local const char *user;
template <typename T> struct Counted {
    using value_type = T;
    Counted() = default;
    template <typename U> Counted(const Counted<U> &) {}
    T *allocate(size_t n) { return static_cast<T *>(take_as(user, ::operator new(n * sizeof(T)), n * sizeof(T))); }
    void deallocate(T *block, size_t n) { ::operator delete(give(block), n * sizeof(T)); }
    bool operator==(const Counted &) const { return true; }
    bool operator!=(const Counted &) const { return false; }
};
using Text = std::basic_string<char, std::char_traits<char>, Counted<char>>;
template <typename T> using Row = std::vector<T, Counted<T>>;
using Table = std::map<int, Text, std::less<int>, Counted<std::pair<const int, Text>>>;
#define USES user = __func__

ALONE static void fills(Row<long> &row, long n) {
    USES;
    for (long i = 0; i < n; i++) row.push_back(i);
    KEEP_CALL;
}
ALONE static void appends(Text &text, int n) {
    USES;
    for (int i = 0; i < n; i++) text += "some text ";
    KEEP_CALL;
}
ALONE static void inserts(Table &table, int n) {
    USES;
    for (int i = 0; i < n; i++) table[i * 7 % 1000] = Text(static_cast<size_t>(i % 40), 'x');
    KEEP_CALL;
}
ALONE static void containers() {
    for (int i = 1; i <= 10; i++) {
        // Those of even rounds are never destroyed.
        alignas(Row<long>) static char rows[11][sizeof(Row<long>)];
        alignas(Text) static char texts[11][sizeof(Text)];
        alignas(Table) static char tables[11][sizeof(Table)];
        auto row = new (rows[i]) Row<long>;
        auto text = new (texts[i]) Text;
        auto table = new (tables[i]) Table;
        fills(*row, i * 100);
        appends(*text, i * 10);
        inserts(*table, i * 20);
        if (i % 3 == 0) table->erase(table->begin(), std::next(table->begin(), 10));
        if (i % 2) {
            row->~Row<long>();
            text->~Text();
            table->~Table();
        }
    }
}
// The same without an allocator of their own: what has no account is compared with other tools only.
ALONE static void usual_containers() {
    auto words = new std::map<std::string, std::vector<std::string>>;
    for (int i = 0; i < 500; i++)
        (*words)["word number " + std::to_string(i % 50)].push_back(std::string(static_cast<size_t>(i), 'y'));
    auto shared = std::make_shared<std::vector<int>>(100);
    static std::weak_ptr<std::vector<int>> weak;
    weak = shared;
    auto unique = std::make_unique<std::string>(200, 'z');
    std::thread([&] { words->erase("word number 7"); }).join();
    if (words->size() != 49) fail("not erased\n");
}

// Exceptions while blocks are held: those of guards are given back on the way, bare ones leak.
struct Holder {
    void *block;
    ALONE explicit Holder(size_t size) : block(take_as("Holder::Holder", ::operator new(size), size)) {}
    ALONE ~Holder() { ::operator delete(give(block)); }
};
ALONE static int throws(int depth) {
    Holder holder(30);
    makes_by_operator(3);
    if (depth == 0) throw std::pair<int, int>(1, 2);
    int inner = throws(depth - 1);
    KEEP_CALL;
    return inner + 1;
}
ALONE static int catches(int depth) {
    int caught = 0;
    try {
        throws(depth);
    } catch (const std::pair<int, int> &e) {
        makes_by_operator(8);
        caught = e.first;
    }
    KEEP_CALL;
    return caught;
}
ALONE static void refuses() {
    for (int i = 0; i < 5; i++) {
        Holder holder(100);
        try {
            if (i % 2) delete[] new char[huge];
            else ::operator delete(::operator new(huge, std::align_val_t(64)));
            fail("so much cannot be\n");
        } catch (const std::bad_alloc &) {
            makes_by_operator(4);
        }
        if (::operator new(huge, std::nothrow)) fail("so much cannot be\n");
    }
}
static std::exception_ptr kept;
ALONE static void exceptions() {
    for (int i = 0; i < 20; i++)
        if (catches(i) != 1) fail("not caught\n");
    // It holds the exception, and that a text, until static objects are destroyed.
    try {
        throw std::runtime_error("a text that is longer than what fits into a string itself");
    } catch (...) {
        kept = std::current_exception();
    }
    makes_one();
}
// By itself: under valgrind no operator throws.
ALONE static void bad_allocs() { refuses(); }

// Static objects: constructed before main, destroyed behind it.
struct Static {
    void *block = nullptr;
    ALONE Static() {
        if (getenv("HEAP_STATICS")) block = take_as("Static::Static", new char[41], 41);
    }
    ALONE ~Static() {
        if (!block) return;
        delete[] static_cast<char *>(give(block));
        take_as("Static::~Static", new char[43], 43);
    }
};
static Static before_main;
ALONE static Static &first_use() {
    static Static at_first_use;
    return at_first_use;
}
ALONE static void statics() {
    if (!first_use().block) fail("not constructed\n");
}

static const scenario all[] = {
    {"news", news},           {"containers", containers}, {"usual_containers", usual_containers},
    {"exceptions", exceptions}, {"bad_allocs", bad_allocs}, {"statics", statics},
    {nullptr, nullptr},
};

int main(int argc, char **argv) { return run_scenario(all, argc, argv); }
