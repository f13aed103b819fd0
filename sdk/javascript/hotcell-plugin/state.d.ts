/** The value at a dotted path such as `order.items.0.name`, or `otherwise` where the path leads nowhere. */
export function get(path: string, otherwise?: unknown): any;
/** The whole state. */
export function all(): Record<string, any>;
