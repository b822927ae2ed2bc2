// SPDX-License-Identifier: GPL-2.0-or-later
//
// A binary tree that is built, thinned out and built again: recursion, and a peak in the middle of the run.

#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *child[2];
    char *name;
};

static struct node *build(int depth)
{
    struct node *node = calloc(1, sizeof *node);
    node->name = malloc((size_t)(10 + depth * 3));
    if (depth > 0)
        for (int i = 0; i < 2; i++)
            node->child[i] = build(depth - 1);
    return node;
}

static void fell(struct node *node)
{
    if (!node)
        return;
    for (int i = 0; i < 2; i++)
        fell(node->child[i]);
    free(node->name);
    free(node);
}

static int count(const struct node *node)
{
    return node ? 1 + count(node->child[0]) + count(node->child[1]) : 0;
}

int main(void)
{
    struct node *tree = build(9);
    fell(tree->child[0]);
    tree->child[0] = build(10);
    int largest = count(tree);
    fell(tree->child[1]);
    tree->child[1] = build(5);
    printf("%d then %d\n", largest, count(tree));
    fell(tree);
    return 0;
}
