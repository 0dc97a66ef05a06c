//! What stands after what: an order in which each comes after those that it names, or the circle that forbids one.

use std::collections::{BTreeMap, BTreeSet};

/// The names in an order in which each comes after those that it names, otherwise as they stand.
///
/// # Errors
///
/// Fails with the names of a circle.
pub(super) fn sorted<'a>(items: &[(&'a str, Vec<&'a str>)]) -> Result<Vec<&'a str>, Vec<&'a str>> {
    let after: BTreeMap<&str, &[&str]> =
        items.iter().map(|(name, after)| (*name, after.as_slice())).collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut order = Vec::new();
    for (name, _) in items {
        visit(name, &after, &mut Vec::new(), &mut done, &mut order)?;
    }
    Ok(order)
}

fn visit<'a>(
    name: &'a str,
    after: &BTreeMap<&'a str, &[&'a str]>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
    order: &mut Vec<&'a str>,
) -> Result<(), Vec<&'a str>> {
    if done.contains(name) {
        return Ok(());
    }
    if let Some(start) = path.iter().position(|other| *other == name) {
        let mut circle = path[start..].to_vec();
        circle.push(name);
        return Err(circle);
    }
    path.push(name);
    for other in after.get(name).copied().unwrap_or_default() {
        visit(other, after, path, done, order)?;
    }
    path.pop();
    done.insert(name);
    order.push(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_after_what_it_names() {
        let items = [("c", vec!["a"]), ("b", vec![]), ("a", vec!["b"])];
        assert_eq!(sorted(&items), Ok(vec!["b", "a", "c"]));
    }

    #[test]
    fn a_circle_is_named() {
        let items = [("x", vec!["a"]), ("a", vec!["b"]), ("b", vec!["a"])];
        assert_eq!(sorted(&items), Err(vec!["a", "b", "a"]));
    }
}
