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
  // Boa reads dates of ISO 8601 and of its own `toString`; Node also reads those of mail and HTTP headers (RFC 2822).
  const ZONES = { GMT: 0, UTC: 0, UT: 0, Z: 0, EST: -300, EDT: -240, CST: -360, CDT: -300, MST: -420, MDT: -360, PST: -480, PDT: -420 };
  const HEADER_DATE = /^\s*(?:[a-z]{3,9},?\s+)?(\d{1,2})[\s-]+([a-z]{3,9})[\s-]+(\d{4})(?:\s+(\d{1,2}):(\d{2})(?::(\d{2}))?)?\s*([a-z]{1,3}|[+-]\d{2}:?\d{2})?\s*(?:\([^)]*\))?\s*$/i;
  function headerDate(text) {
    const found = HEADER_DATE.exec(text);
    if (!found) return NaN;
    const month = MONTHS.findIndex((name) => name.slice(0, 3).toLowerCase() === found[2].slice(0, 3).toLowerCase());
    const zone = (found[7] ?? "UTC").toUpperCase();
    const signed = /^([+-])(\d{2}):?(\d{2})$/.exec(zone);
    const offset = signed ? (signed[1] === "-" ? -1 : 1) * (Number(signed[2]) * 60 + Number(signed[3])) : ZONES[zone];
    if (month < 0 || offset === undefined) return NaN;
    return Date.UTC(found[3], month, found[1], found[4] ?? 0, found[5] ?? 0, found[6] ?? 0) - offset * 60000;
  }
  const OwnDate = Date;
  const ownParse = OwnDate.parse;
  function parseDate(text) {
    const time = ownParse(text);
    return Number.isNaN(time) ? headerDate(String(text)) : time;
  }
  method(OwnDate, "parse", function parse(text) { return parseDate(text); });
  publish("Date", new Proxy(OwnDate, {
    construct(target, parameters, newTarget) {
      const text = parameters.length === 1 && typeof parameters[0] === "string";
      return Reflect.construct(target, text ? [parseDate(parameters[0])] : parameters, newTarget);
    },
  }));
  method(OwnDate.prototype, "constructor", Date);

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
