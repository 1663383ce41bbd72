//! Strongly connected components of a directed graph, without recursion.
//!
//! Must not know what the nodes mean. Invariant: components come in an order in which every edge leads to the same or an earlier one.

/// Returns the components of the graph whose node `i` has edges to `edges[i]`, each sorted, dependencies first (Tarjan 1972).
pub(super) fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let count = edges.len();
    let mut order = vec![UNSEEN; count];
    let mut low = vec![0; count];
    let mut on_stack = vec![false; count];
    let mut stack = Vec::new();
    let mut found = Vec::new();
    let mut next = 0;
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in 0..count {
        if order[root] != UNSEEN {
            continue;
        }
        path.push((root, 0));
        while let Some((node, position)) = path.last_mut() {
            let node = *node;
            if *position == 0 {
                order[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&target) = edges[node].get(*position) {
                *position += 1;
                if order[target] == UNSEEN {
                    path.push((target, 0));
                } else if on_stack[target] {
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            path.pop();
            if let Some((above, _)) = path.last() {
                low[*above] = low[*above].min(low[node]);
            }
            if low[node] == order[node] {
                let start = stack.iter().rposition(|&member| member == node).expect("a root of a component is on the stack");
                let mut component = stack.split_off(start);
                for &member in &component {
                    on_stack[member] = false;
                }
                component.sort_unstable();
                found.push(component);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_first() {
        assert_eq!(components(&[vec![1], vec![2], vec![]]), [vec![2], vec![1], vec![0]]);
        assert_eq!(components(&[vec![1], vec![2], vec![0, 3], vec![3], vec![0]]), [vec![3], vec![0, 1, 2], vec![4]]);
        assert_eq!(components(&[vec![0]]), [vec![0]]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let count = 200_000;
        let chain: Vec<_> = (0..count).map(|node| if node + 1 < count { vec![node + 1] } else { vec![] }).collect();
        assert_eq!(components(&chain).len(), count);
        let ring: Vec<_> = (0..count).map(|node| vec![(node + 1) % count]).collect();
        assert_eq!(components(&ring).len(), 1);
    }
}
