;; nests components deeper than any plugin does
;; expect: refused
(component (component (component (component (component (component (component (component (component (component
))))))))))
