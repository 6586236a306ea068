// The names that @nostr-dev-kit/sync imports at its top. Nothing here is ever called: the tests use its Negentropy
// classes only, and the real library would add some 40 MB to the installation.
export class NDKRelaySet {}
export const NDKSubscriptionCacheUsage = {};
export function fetchRelayInformation() {
  throw new Error("not part of this test");
}
