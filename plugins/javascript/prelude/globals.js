// Puts what the other parts made onto the global object, and gives numbers and dates the en-US text that scripts expect of Node.
(function (host, internals) {
  "use strict";

  function publish(name, value) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
  for (const [name, value] of Object.entries({ ...internals.web, ...internals.timers })) publish(name, value);
  publish("process", internals.process);
  publish("console", internals.console);
  publish("Buffer", internals.Buffer);
  publish("global", globalThis);
  publish("queueMicrotask", (callback) => { Promise.resolve().then(() => callback()); });

  function grouped(digits) { return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ","); }
  function numberText(value, options = {}) {
    if (typeof value === "bigint") return (value < 0n ? "-" : "") + grouped(String(value < 0n ? -value : value));
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value < 0 ? "-∞" : "∞";
    const percent = options.style === "percent";
    const currency = options.style === "currency";
    const least = options.minimumFractionDigits ?? (currency ? 2 : 0);
    const most = Math.max(least, options.maximumFractionDigits ?? (currency ? 2 : percent ? 0 : 3));
    let text = Math.abs(percent ? value * 100 : value).toFixed(Math.min(most, 100));
    if (text.includes("e")) text = BigInt(Math.abs(value)).toString();
    let [whole, fraction = ""] = text.split(".");
    while (fraction.length > least && fraction.endsWith("0")) fraction = fraction.slice(0, -1);
    if (options.minimumIntegerDigits) whole = whole.padStart(options.minimumIntegerDigits, "0");
    if (options.useGrouping !== false) whole = grouped(whole);
    const symbol = currency ? { USD: "$", EUR: "€", GBP: "£", JPY: "¥" }[options.currency] ?? `${options.currency} ` : "";
    return (value < 0 ? "-" : "") + symbol + whole + (fraction === "" ? "" : "." + fraction) + (percent ? "%" : "");
  }
  const method = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, configurable: true });
  method(Number.prototype, "toLocaleString", function toLocaleString(locale, options) { return numberText(Number(this), options); });
  method(BigInt.prototype, "toLocaleString", function toLocaleString() { return numberText(BigInt(this)); });

  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  function dateText(date, options = {}) {
    const { weekday, year, month, day } = options;
    if (!weekday && !year && !month && !day) return `${date.getUTCMonth() + 1}/${date.getUTCDate()}/${date.getUTCFullYear()}`;
    const two = (number, style) => style === "2-digit" ? String(number % 100).padStart(2, "0") : String(number);
    const yearText = year ? two(date.getUTCFullYear(), year) : "";
    const dayText = day ? two(date.getUTCDate(), day) : "";
    const dayName = weekday ? (weekday === "long" ? DAYS[date.getUTCDay()] : DAYS[date.getUTCDay()].slice(0, 3)) : "";
    if (month === "long" || month === "short") {
      const name = month === "long" ? MONTHS[date.getUTCMonth()] : MONTHS[date.getUTCMonth()].slice(0, 3);
      const monthDay = [name, dayText].filter(Boolean).join(" ");
      return [dayName, monthDay, yearText].filter(Boolean).join(dayText ? ", " : " ");
    }
    const numbers = [month ? two(date.getUTCMonth() + 1, month) : "", dayText, yearText].filter(Boolean).join("/");
    return [dayName, numbers].filter(Boolean).join(", ");
  }
  function timeText(date, options = {}) {
    const half = options.hour12 !== false;
    const hour = date.getUTCHours();
    const shown = half ? hour % 12 || 12 : String(hour).padStart(2, "0");
    const pad = (number) => String(number).padStart(2, "0");
    return `${shown}:${pad(date.getUTCMinutes())}:${pad(date.getUTCSeconds())}${half ? (hour < 12 ? " AM" : " PM") : ""}`;
  }
  const valid = (date) => !Number.isNaN(date.getTime());
  method(Date.prototype, "toLocaleDateString", function toLocaleDateString(locale, options) { return valid(this) ? dateText(this, options) : "Invalid Date"; });
  method(Date.prototype, "toLocaleTimeString", function toLocaleTimeString(locale, options) { return valid(this) ? timeText(this, options) : "Invalid Date"; });
  method(Date.prototype, "toLocaleString", function toLocaleString(locale, options) {
    return valid(this) ? `${dateText(this, options)}, ${timeText(this, options)}` : "Invalid Date";
  });

  // What lowered decorators call.
  publish("babelHelpers", {
    decorate(decorators, target, key, descriptor) {
      const ofClass = key === undefined;
      let current = ofClass ? target : descriptor === null ? Object.getOwnPropertyDescriptor(target, key) : descriptor;
      for (const decorator of decorators.toReversed()) current = (ofClass ? decorator(current) : decorator(target, key, current)) ?? current;
      if (!ofClass && current) Object.defineProperty(target, key, current);
      return current;
    },
    decorateParam: (index, decorator) => (target, key) => decorator(target, key, index),
    decorateMetadata: () => () => {},
  });
});
