use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use hotcell_budget::Bytes;

use super::{Place, Room, Share};

const MIB: u64 = 1 << 20;

type Waits = Pin<Box<dyn Future<Output = Place>>>;

fn take(share: &Arc<Share>, mib: u64) -> Waits {
    let share = share.clone();
    Box::pin(async move { share.take(Bytes(mib * MIB)).await })
}

/// Those that are served at this moment, of those that wait.
fn served(waiting: &mut Vec<(char, Waits)>, places: &mut Vec<(char, Place)>) -> String {
    let mut names = String::new();
    waiting.retain_mut(|(name, waits)| match waits.now_or_never() {
        Some(place) => {
            names.push(*name);
            places.push((*name, place));
            false
        }
        None => true,
    });
    names
}

#[tokio::test]
async fn memory_is_handed_out_in_the_order_of_asking() {
    let share = Room::new(10, Bytes(100 * MIB)).rest();
    let first = share.take(Bytes(60 * MIB)).await;
    let (mut large, mut small) = (take(&share, 80), take(&share, 10));
    assert!(futures::poll!(&mut large).is_pending());
    // There is enough for it, but somebody waits already.
    assert!(futures::poll!(&mut small).is_pending());
    assert!(share.try_take(Bytes(10 * MIB)).is_none());
    drop(first);
    let (_large, small) = (large.await, small.await);
    assert!(share.try_take(Bytes(11 * MIB)).is_none());
    drop(small);
    assert!(share.try_take(Bytes(11 * MIB)).is_some());
}

#[tokio::test]
async fn who_needs_more_than_there_is_has_it_alone() {
    let share = Room::new(10, Bytes(100 * MIB)).rest();
    let all = share.take(Bytes(u64::MAX)).await;
    assert!(share.try_take(Bytes(1)).is_none());
    drop(all);
    assert!(share.try_take(Bytes(1)).is_some());
}

#[tokio::test]
async fn who_does_not_wait_any_more_is_in_nobodys_way() {
    let share = Room::new(10, Bytes(100 * MIB)).rest();
    let _first = share.take(Bytes(60 * MIB)).await;
    let (mut large, mut small) = (take(&share, 80), take(&share, 10));
    assert!(futures::poll!(&mut large).is_pending() && futures::poll!(&mut small).is_pending());
    drop(large);
    assert!(futures::poll!(&mut small).is_ready());
    // What was given to somebody who was not there to take it is given to the next one.
    let share = Room::new(1, Bytes(100 * MIB)).rest();
    let held = share.take(Bytes(1)).await;
    let (mut gone, mut next) = (take(&share, 1), take(&share, 1));
    assert!(futures::poll!(&mut gone).is_pending() && futures::poll!(&mut next).is_pending());
    drop(held);
    drop(gone);
    assert!(futures::poll!(&mut next).is_ready());
}

#[tokio::test]
async fn what_becomes_free_goes_to_the_one_that_has_least_by_its_weight() {
    let room = Room::new(8, Bytes(1000 * MIB));
    let (a, b) = (room.share(1), room.share(3));
    let mut waiting: Vec<(char, Waits)> = Vec::new();
    let mut places = Vec::new();
    // One alone has all but what is left free for the other: 8 * 3/4 / 4.
    waiting.extend((0..100).map(|_| ('a', take(&a, 1))));
    assert_eq!(served(&mut waiting, &mut places), "aaaaaaa");
    // The other one begins at once.
    waiting.extend((0..100).map(|_| ('b', take(&b, 1))));
    assert_eq!(served(&mut waiting, &mut places), "b");
    // While both want more than there is, they come to have it by their weights, and keep it so.
    let mut counts = Vec::new();
    for _ in 0..40 {
        places.remove(0);
        served(&mut waiting, &mut places);
        counts.push(places.iter().filter(|(name, _)| *name == 'b').count());
    }
    assert!(counts[10..].iter().all(|of_b| (5..=6).contains(of_b)), "{counts:?}");
    // When the other one is done, what it had is not left unused, but for what it may begin with again.
    waiting.retain(|(name, _)| *name == 'a');
    places.retain(|(name, _)| *name == 'a');
    served(&mut waiting, &mut places);
    assert_eq!(places.len(), 7);
}

#[tokio::test]
async fn memory_is_shared_as_places_are() {
    let room = Room::new(100, Bytes(80 * MIB));
    let (a, b) = (room.share(1), room.share(1));
    let mut waiting: Vec<(char, Waits)> = vec![('A', take(&a, 1_000)), ('a', take(&a, 30))];
    let mut places = Vec::new();
    // However much it asks for, what is left free for the other one is not its.
    assert_eq!(served(&mut waiting, &mut places), "A");
    waiting.push(('b', take(&b, 10)));
    assert_eq!(served(&mut waiting, &mut places), "b");
    // Who has much waits for what it does not fit into, and the other one is served within its part.
    waiting.push(('c', take(&b, 5)));
    assert_eq!(served(&mut waiting, &mut places), "");
    drop(places.remove(0));
    assert_eq!(served(&mut waiting, &mut places), "ac");
}

#[tokio::test]
async fn a_share_that_is_gone_leaves_nothing_behind() {
    let room = Room::new(8, Bytes(80 * MIB));
    let a = room.share(1);
    let b = room.share(1);
    let held: Vec<Place> = (0..7).filter_map(|_| a.try_take(Bytes(MIB))).collect();
    assert_eq!((held.len(), a.try_take(Bytes(MIB)).is_none()), (7, true));
    let mut waits = take(&a, 1);
    assert!(futures::poll!(&mut waits).is_pending());
    drop(b);
    assert!(futures::poll!(&mut waits).is_ready());
}
