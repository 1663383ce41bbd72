async fn f<T>(mut self_: T, (a, .., b): (u8, u8, u8)) -> Result<u8, Box<dyn std::error::Error>> {
    let Some(x) = g(a).await? else { return Err("é".into()) };
    let v: Vec<_> = x.iter().map(|&(ref y, _)| y.z::<u8>()).collect::<Vec<_>>();
    'outer: for (i, w) in v[1..].iter().enumerate() {
        match w { A | B::C(_) if let D { e, .. } = h(i) && e > 1 => break 'outer, n @ 1..=MAX => k(n), _ => {} }
    }
    fn inner() { struct L; impl L { const N: u8 = { fn deep() {} 1 }; } use m::*; }
    println!("{v:?} {}", o(p!(q::r, s)), t = u());
    assert!(matches!(x, Some(F::G { .. })), "no {}", w);
    if a == b { unsafe { *self_.raw = S { a, ..Default::default() } } } else if let Some(c) = d() { c() }
    Ok(|x| _ = x)
}
