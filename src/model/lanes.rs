//! SHA-256 of many messages, two at a time where the processor has instructions for it: a round of one message has to wait for the round
//! before it, and another message fills the wait.
//!
//! Must not know what is hashed. Invariant: each digest is the one that `sha2` gives, whichever way it was computed.

use sha2::{Digest, Sha256};

/// Calls `found` with the position and the digest of each message, in no order.
pub(super) fn digest_each(messages: &[&[u8]], mut found: impl FnMut(usize, [u8; 32])) {
    // An unoptimised build calls each instruction as a function; `sha2` is optimised in any.
    if !cfg!(debug_assertions) && digest_in_lanes(messages, &mut found) {
        return;
    }
    for (position, message) in messages.iter().enumerate() {
        found(position, Sha256::digest(message).into());
    }
}

/// As [`digest_each`]; returns false, without a call, when that would be no faster than one message after the other.
#[cfg(target_arch = "x86_64")]
fn digest_in_lanes(messages: &[&[u8]], found: &mut impl FnMut(usize, [u8; 32])) -> bool {
    let faster = messages.len() > 1 && sha_extensions::are_supported();
    if faster {
        // SAFETY: the processor has the instructions, as was just found out.
        unsafe { sha_extensions::digest_each(messages, found) };
    }
    faster
}

#[cfg(not(target_arch = "x86_64"))]
fn digest_in_lanes(_: &[&[u8]], _: &mut impl FnMut(usize, [u8; 32])) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
mod sha_extensions {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi32, _mm_set_epi64x,
        _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_storeu_si128,
    };

    const BLOCK: usize = 64;

    /// The round constants of FIPS 180-4, section 4.2.2.
    #[rustfmt::skip]
    const K: [u32; 64] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ];

    pub(super) fn are_supported() -> bool {
        is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1")
    }

    /// The eight words of a hash in the order that the instructions want: A, B, E and F in one register, C, D, G and H in the other.
    type State = [__m128i; 2];

    /// A message on its way through a lane.
    struct Lane<'m> {
        position: usize,
        state: State,
        /// What is left of the whole blocks of the message.
        whole: &'m [u8],
        /// The rest of the message, padded to one or two blocks.
        last: [u8; 2 * BLOCK],
        /// Which part of it is still to come.
        last_from: usize,
        last_to: usize,
    }

    impl<'m> Lane<'m> {
        #[target_feature(enable = "sse2")]
        fn of(position: usize, message: &'m [u8]) -> Self {
            let (whole, rest) = message.split_at(message.len() / BLOCK * BLOCK);
            let mut last = [0; 2 * BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            last[rest.len()] = 0x80;
            let last_to = if rest.len() + 9 <= BLOCK { BLOCK } else { 2 * BLOCK };
            last[last_to - 8..last_to].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
            // The first 32 bits of the fractional parts of the square roots of the first eight primes.
            let state = [
                _mm_set_epi32(0x6a09_e667, 0xbb67_ae85_u32 as i32, 0x510e_527f, 0x9b05_688c_u32 as i32),
                _mm_set_epi32(0x3c6e_f372, 0xa54f_f53a_u32 as i32, 0x1f83_d9ab, 0x5be0_cd19),
            ];
            Self { position, state, whole, last, last_from: 0, last_to }
        }

        /// Returns the blocks that are next and lie together; empty when the message is through.
        fn next(&self) -> &[u8] {
            if self.whole.is_empty() { &self.last[self.last_from..self.last_to] } else { self.whole }
        }

        fn skip(&mut self, blocks: usize) {
            if self.whole.is_empty() { self.last_from += blocks * BLOCK } else { self.whole = &self.whole[blocks * BLOCK..] }
        }

        #[target_feature(enable = "ssse3,sse4.1")]
        fn digest(&self) -> [u8; 32] {
            let [abef, cdgh] = self.state;
            // From the order of the instructions to A..D and E..H, each word big-endian.
            let feba = _mm_shuffle_epi32(abef, 0x1b);
            let dchg = _mm_shuffle_epi32(cdgh, 0xb1);
            let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
            let abcd = _mm_shuffle_epi8(_mm_blend_epi16(feba, dchg, 0xf0), big_endian);
            let efgh = _mm_shuffle_epi8(_mm_alignr_epi8(dchg, feba, 8), big_endian);
            let mut digest = [0; 32];
            // SAFETY: the array has room for two registers, and the stores need no alignment.
            unsafe {
                _mm_storeu_si128(digest.as_mut_ptr().cast(), abcd);
                _mm_storeu_si128(digest.as_mut_ptr().add(16).cast(), efgh);
            }
            digest
        }
    }

    #[target_feature(enable = "sha,ssse3,sse4.1")]
    pub(super) fn digest_each(messages: &[&[u8]], found: &mut impl FnMut(usize, [u8; 32])) {
        // The longest first, so that none is left alone at the end for long.
        let mut order: Vec<usize> = (0..messages.len()).collect();
        order.sort_unstable_by_key(|&position| std::cmp::Reverse(messages[position].len()));
        let mut waiting = order.into_iter();
        let mut next = || waiting.next().map(|position| Lane::of(position, messages[position]));
        let (mut left, mut right) = (next(), next());
        while let (Some(first), Some(second)) = (&mut left, &mut right) {
            let blocks = first.next().len().min(second.next().len()) / BLOCK;
            let mut states = [first.state, second.state];
            compress(&mut states, [first.next(), second.next()], blocks);
            [first.state, second.state] = states;
            first.skip(blocks);
            second.skip(blocks);
            for lane in [&mut left, &mut right] {
                if let Some(done) = lane.take_if(|lane| lane.next().is_empty()) {
                    found(done.position, done.digest());
                    *lane = next();
                }
            }
        }
        if let Some(mut lane) = left.or(right) {
            while !lane.next().is_empty() {
                let blocks = lane.next().len() / BLOCK;
                let mut states = [lane.state];
                compress(&mut states, [lane.next()], blocks);
                [lane.state] = states;
                lane.skip(blocks);
            }
            found(lane.position, lane.digest());
        }
    }

    /// Takes `blocks` blocks of each of some messages into their states, all messages in step.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn compress<const N: usize>(states: &mut [State; N], messages: [&[u8]; N], blocks: usize) {
        let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        let zero = _mm_set_epi64x(0, 0);
        let mut current = *states;
        for block in 0..blocks {
            let before = current;
            // The last sixteen words of each message's schedule.
            let mut words = [[zero; 4]; N];
            for lane in 0..N {
                let bytes = &messages[lane][block * BLOCK..(block + 1) * BLOCK];
                for (four, word) in words[lane].iter_mut().enumerate() {
                    // SAFETY: four times sixteen bytes are within a block, and the load needs no alignment.
                    let loaded = unsafe { _mm_loadu_si128(bytes.as_ptr().add(four * 16).cast()) };
                    *word = _mm_shuffle_epi8(loaded, big_endian);
                }
            }
            let mut inputs = [zero; N];
            // Written out, so that all words stay in registers.
            macro_rules! four_rounds {
                ($($fourth:literal)*) => {$(
                    // SAFETY: there are 64 constants, and the load needs no alignment.
                    let constants = unsafe { _mm_loadu_si128(K.as_ptr().add($fourth * 4).cast()) };
                    for lane in 0..N {
                        if $fourth >= 4 {
                            let [a, b, c, d] = [0, 1, 2, 3].map(|age| words[lane][($fourth + age) % 4]);
                            let sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));
                            words[lane][$fourth % 4] = _mm_sha256msg2_epu32(sum, d);
                        }
                    }
                    for lane in 0..N {
                        inputs[lane] = _mm_add_epi32(words[lane][$fourth % 4], constants);
                        let [abef, cdgh] = current[lane];
                        current[lane][1] = _mm_sha256rnds2_epu32(cdgh, abef, inputs[lane]);
                    }
                    for lane in 0..N {
                        let [abef, cdgh] = current[lane];
                        current[lane][0] = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(inputs[lane], 0x0e));
                    }
                )*};
            }
            four_rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            for lane in 0..N {
                for half in 0..2 {
                    current[lane][half] = _mm_add_epi32(current[lane][half], before[lane][half]);
                }
            }
        }
        *states = current;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look random and are the same in each run.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let step = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..length).map(step).collect()
    }

    fn check(lengths: &[usize]) {
        let texts: Vec<_> = lengths.iter().enumerate().map(|(seed, length)| noise(seed as u64, *length)).collect();
        let messages: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let expected: Vec<Option<[u8; 32]>> = messages.iter().map(|message| Some(Sha256::digest(message).into())).collect();
        for in_lanes in [false, true] {
            let mut digests = vec![None; messages.len()];
            let mut found =
                |position: usize, digest| assert_eq!(digests[position].replace(digest), None, "{position} came twice");
            if !in_lanes {
                digest_each(&messages, found);
            } else if !digest_in_lanes(&messages, &mut found) {
                continue;
            }
            assert_eq!(digests, expected, "{lengths:?}");
        }
    }

    #[test]
    fn digests_are_those_of_one_message_alone() {
        check(&[]);
        check(&[0]);
        check(&[0, 0, 0]);
        // Every way that a message can end, beside one that ends otherwise.
        check(&(0..=260).collect::<Vec<_>>());
        check(&(0..=260).rev().flat_map(|length| [length, 1000]).collect::<Vec<_>>());
        // A long one beside many short ones, and the other way round.
        check(&[100_000, 1, 64, 63, 0, 65, 5_000]);
        check(&[1, 64, 63, 0, 65, 5_000, 100_001]);
        let lengths =
            noise(7, 400).chunks(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])) / 3).collect::<Vec<_>>();
        check(&lengths);
    }
}
