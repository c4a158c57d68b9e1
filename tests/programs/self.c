/* Types that lead to themselves, and deep ones. */
struct node {
    int value;
    struct node *next;
    struct {
        struct {
            struct node *up;
        } in[4];
    } many;
};
typedef struct node ****deep;
typedef deep deeper;

__attribute__((noinline)) int walk(struct node *n, deeper deep, int (*call)(struct node *)) {
    return n->value + (deep != 0) + (call != 0);
}

int main(void) {
    struct node n = {1, &n, {{{&n}}}};
    return walk(&n, 0, 0) != 1;
}
