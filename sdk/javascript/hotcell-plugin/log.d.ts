/** Every step; for the plugin's author. */
export function trace(message: unknown): void;
/** What helps to find a mistake. */
export function debug(message: unknown): void;
/** What happened, in the order of things. */
export function info(message: unknown): void;
/** Something is not as it should be, and the call goes on. */
export function warn(message: unknown): void;
/** Something failed. */
export function error(message: unknown): void;
